"""The scripted model: it answers from the conversation alone, so that a repeated request gets the same answer.

Each behaviour gives shell commands step by step and a final text. The step is read from the ids of the model's own
tool calls in the conversation; if a claw drops the ids, its assistant messages are counted instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gateway.behaviours.base import Behaviour, Fault, Job, Pace
from gateway.behaviours.behaviour_table import parse_model
from gateway.case_models import CaseSpec
from gateway.chat_wire import ChatRequest, FunctionSpec, Reply, ToolCall
from gateway.tools import find_shell_tool, required_arguments

SIDE_REPLY = "Fix of the reported issue."
NO_SHELL = "No shell tool was offered to me. I cannot look at the repository, so I changed nothing."

NOBODYS = FunctionSpec(name="quuxify")
"""A tool that no claw has."""
UNOFFERED = FunctionSpec(name="web_search")
"""A tool that is called if the filter removed none: claws have it, but turned off."""

_OUR_CALL = re.compile(r"call_cb(\d{4})x[0-9a-f]{12}")


@dataclass(frozen=True)
class ScriptedModel:
    """The model of one case."""

    job: Job
    behaviour: Behaviour

    @classmethod
    def of(cls, spec: CaseSpec) -> ScriptedModel:
        """A case's model (raises ValueError for an unknown one)."""
        job = Job(spec.case_id, spec.workdir, spec.gold_patch, spec.commands)
        return cls(job, parse_model(spec.model))

    @property
    def pace(self) -> Pace:
        """How fast the replies are sent."""
        return self.behaviour.pace

    def answer(self, request: ChatRequest, failed: int = 0, removed: Sequence[FunctionSpec] = ()) -> Reply | Fault:
        """The reply to a request; a request without tools is a side request and does not advance the steps.

        Args:
            request: of the claw.
            failed: how many earlier requests of the case failed on purpose.
            removed: the functions that the filter removed from it.
        """
        behaviour = self.behaviour
        if behaviour.fault and not behaviour.works_first and failed != behaviour.faults:
            return behaviour.fault
        functions = request.functions
        if not functions:
            return Reply(SIDE_REPLY)
        step = steps_done(request.messages)
        strays = [NOBODYS, *(removed or [UNOFFERED])] if behaviour.strays else []
        if step < len(strays):
            return self._call(strays[step], json.dumps(required_arguments(strays[step], self.job.workdir)), step)
        command = behaviour.command(self.job, step - len(strays))
        if command is None and behaviour.fault and behaviour.works_first:
            return behaviour.fault
        if command is None:
            return Reply(behaviour.conclude(self.job, tool_results(request.messages)))
        tool = find_shell_tool(functions)
        return (
            self._call(tool.function, tool.arguments(command, self.job.workdir), step) if tool else Reply(NO_SHELL)
        )

    def _call(self, function: FunctionSpec, arguments: str, step: int) -> Reply:
        return Reply(f"I run step {step + 1}.", ToolCall(function.name, arguments, step))


def steps_done(messages: Sequence[dict[str, Any]]) -> int:
    """How many of the model's tool calls the conversation has answered."""
    ours = [json.dumps(message) for message in messages if message.get("role") == "assistant"]
    numbers = [int(number) for text in ours for number in _OUR_CALL.findall(text)]
    return max(numbers) + 1 if numbers else len(ours)


def tool_results(messages: Sequence[dict[str, Any]]) -> str:
    """All messages to the model since it first spoke: some claws send tool results as user messages."""
    roles = [message.get("role") for message in messages]
    if "assistant" not in roles:
        return ""
    later = messages[roles.index("assistant") :]
    return "\n".join(json.dumps(message.get("content")) for message in later if message.get("role") != "assistant")
