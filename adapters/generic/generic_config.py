"""generic's config: what a file in `claw_configs/generic/` may set, and what the suite sets itself.

The file is GenericAgent's own `mykey.json`: several ways to talk to a model; `--llm-no` selects one by its
position. `native_oai_config…` passes tools to the model through the API; `oai_config…` describes them in the
prompt and reads calls from the text. For Anthropic's wire format the same sessions are named
`native_claude_config…` and `claude_config…`: GenericAgent chooses the format by the name.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, RootModel, StringConstraints

from adapters.base import BadOptionError, Task
from adapters.config_files import Settings, load_object, read_settings

SessionName = Annotated[str, StringConstraints(pattern=r"^(native_)?oai_config\w*$")]

_API_MODES = {"chat": "chat_completions", "responses": "responses"}
"""GenericAgent's names for OpenAI's wire formats."""

_MODEL_FOR_ALL = """
for _session in list(globals().values()):
    if isinstance(_session, dict) and "apikey" in _session:
        _session["model"] = {model!r}
"""


class Session(Settings):
    """One way to talk to the model."""

    context_win: int = 200_000
    """A third of the characters after which old messages are left out: roughly the window in tokens."""
    max_retries: int = 2
    """How often a failed request is retried."""
    connect_timeout: int = 10
    """Seconds."""
    read_timeout: int = 600
    """Seconds without a byte of the reply."""
    reasoning_effort: Literal["low", "medium", "high"] | None = None
    temperature: float | None = None
    """The PyPI package does not read it: there it is 0.5."""
    max_tokens: int | None = None
    """Most tokens of a reply. The PyPI package does not read it: there it is 6144."""
    stream: bool | None = None
    """Whether replies are streamed. The PyPI package does not read it: there they are."""


class GenericSettings(RootModel[dict[SessionName, Session]]):
    """A whole file."""

    root: dict[SessionName, Session] = Field(min_length=1)


def own_config(file: Path, task: Task) -> bytes:
    """The user's own config as a `mykey.py`; a model that the task names is set for all its sessions.

    Args:
        file: a `mykey.py` or `mykey.json` of GenericAgent's own. Python is not run here, but in the container.
        task: names the model.

    Raises:
        BadOptionError: it is not JSON, or not an object.
    """
    if file.suffix == ".json":
        text = f"globals().update(__import__('json').loads({json.dumps(load_object(file))!r}))\n"
    else:
        text = file.read_text(encoding="utf-8") + "\n"
    if task.model:
        text += _MODEL_FOR_ALL.format(model=task.model)
    return text.encode()


def render_config(file: Path, task: Task) -> dict[str, Any]:
    """The content of `mykey.json` for one task.

    Raises:
        BadOptionError: the file is not JSON, sets something that is not a setting, or has fewer sessions than the
            task's `llm_no` asks for: GenericAgent would start again from the first.
    """
    sessions = read_settings(file, GenericSettings).root
    if task.llm_no >= len(sessions):
        raise BadOptionError(
            f"--llm-no={task.llm_no}: generic's config has {len(sessions)} sessions, numbered from 0: "
            f"{', '.join(sessions)}"
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
        for name, session in sessions.items()
    }
