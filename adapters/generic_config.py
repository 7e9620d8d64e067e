"""generic's config: what a file in `claw_configs/generic/` may set, and what the suite sets over it.

The file is GenericAgent's own `mykey.json`: several ways to talk to a model, of which `--llm-no` takes one by its
place in the file. `native_oai_config…` hands tools to the model by the API; `oai_config…` describes them in the
prompt and reads calls from the text. With Anthropic's wire format the same sessions are written as
`native_claude_config…` and `claude_config…`: GenericAgent knows what to speak by the name.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel, StringConstraints

from adapters.base import BadOptionError, Task
from adapters.configs import read_object, reading

SessionName = Annotated[str, StringConstraints(pattern=r"^(native_)?oai_config\w*$")]

APIS = ("chat", "messages", "responses")
_API_MODES = {"chat": "chat_completions", "responses": "responses"}
"""GenericAgent's names of OpenAI's wire formats."""

_MODEL_FOR_ALL = """
for _session in list(globals().values()):
    if isinstance(_session, dict) and "apikey" in _session:
        _session["model"] = {model!r}
"""


class Session(BaseModel):
    """One way to talk to the model."""

    model_config = ConfigDict(extra="forbid", strict=True)

    context_win: int = 200_000
    """A third of the characters after which old messages are left out: about the window in tokens."""
    max_retries: int = 2
    """How often a failed request is tried again."""
    connect_timeout: int = 10
    """Seconds."""
    read_timeout: int = 600
    """Seconds without a byte of the reply."""
    reasoning_effort: Literal["low", "medium", "high"] | None = None
    temperature: float | None = None
    """The PyPI package does not read it: there it is 0.5."""
    max_tokens: int | None = None
    """Of a reply. The PyPI package does not read it: there it is 6144."""
    stream: bool | None = None
    """Whether replies are streamed. The PyPI package does not read it: there they are."""


class GenericSettings(RootModel[dict[SessionName, Session]]):
    """A whole file."""

    root: dict[SessionName, Session] = Field(min_length=1)


def read_settings(file: Path) -> GenericSettings:
    """The settings in a file.

    Raises:
        BadOptionError: it is not JSON, or sets something that is not a setting.
    """
    with reading(file):
        return GenericSettings.model_validate_json(file.read_bytes())


def own_config(file: Path, task: Task) -> bytes:
    """The user's own config as a `mykey.py`, with the task's model for all of its sessions, if the task names one.

    Args:
        file: A `mykey.py` or `mykey.json` of GenericAgent's own. Python is not run here, but in the container.
        task: Which model, if it says.

    Raises:
        BadOptionError: it is not JSON, or no object.
    """
    if file.suffix == ".json":
        text = f"globals().update(__import__('json').loads({json.dumps(read_object(file))!r}))\n"
    else:
        text = file.read_text(encoding="utf-8") + "\n"
    if task.model:
        text += _MODEL_FOR_ALL.format(model=task.model)
    return text.encode()


def render_config(settings: GenericSettings, task: Task) -> dict[str, Any]:
    """The content of `mykey.json` for one task.

    Raises:
        BadOptionError: the file has fewer sessions than the task's `llm_no` asks for; GenericAgent itself would
            begin again from the first.
    """
    names = list(settings.root)
    if task.llm_no >= len(names):
        raise BadOptionError(
            f"--llm-no={task.llm_no}: generic's config has {len(names)} sessions, numbered from 0: "
            f"{', '.join(names)}"
        )
    fixed: dict[str, Any] = {"apikey": "placeholder", "apibase": task.base_url, "model": task.model}
    if task.api in _API_MODES:
        fixed["api_mode"] = _API_MODES[task.api]
    if task.context_window:
        fixed["context_win"] = task.context_window
    return {
        name.replace("oai", "claude", 1) if task.api == "messages" else name: {
            **session.model_dump(exclude_none=True),
            "timeout": session.connect_timeout,  # the repository's name for it
            **fixed,
        }
        for name, session in settings.root.items()
    }
