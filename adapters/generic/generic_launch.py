"""Starts GenericAgent inside the container, on a prompt from a file, through the interface of its own front ends.

Its command line works for neither the package nor a checkout: `--task` waits minutes for a reply after it is done,
and the package's modes give up after 120 s without output, which one slow reply or one long test run can take.
`put_task` and its queue exist in both. Run as
`python3 -I generic_launch.py PACKAGES AGENT_FOLDER PROMPT_FILE LLM_NO MAX_TURNS`; "{}" in PACKAGES stands for
Python's version, as in 3.11.
"""

import os
import queue
import site
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

WATCH = 2.0


def main() -> int:
    """Run one task; the exit code is 1 if the agent's thread died."""
    packages, folder, prompt_file, llm_no, max_turns = sys.argv[1:]
    packages = packages.format("{}.{}".format(*sys.version_info))
    sys.path.insert(0, packages)
    site.addsitedir(packages)
    prompt = Path(prompt_file).read_bytes().decode("utf-8")
    agent = make_agent(Path(folder), int(max_turns))
    agent.next_llm(int(llm_no))
    agent.verbose = False
    agent.peer_hint = False
    worker = threading.Thread(target=agent.run, daemon=True)
    worker.start()
    answers = agent.put_task(prompt, "task")
    while True:
        is_alive = worker.is_alive()  # before waiting: its last answer may come meanwhile
        try:
            item = answers.get(timeout=WATCH)
        except queue.Empty:
            if is_alive:
                continue
            return 1
        if "done" in item:
            sys.stdout.write(f"{item['done']}\n")
            return 0


def make_agent(folder: Path, max_turns: int) -> Any:
    """The agent in a folder, which is a package or a checkout."""
    # It tells the model that its tools work in ./temp, which is below the agent's folder.
    os.chdir(folder)
    # Newer versions then leave out the tools that ask the user or keep something for the next session.
    sys.argv = ["agentmain.py", "--no-user-tools"]
    is_package = (folder / "__init__.py").exists()
    sys.path.insert(0, str(folder.parent if is_package else folder))
    agentmain = import_module(f"{folder.name}.agentmain" if is_package else "agentmain")
    agentmain.agent_runner_loop = limited(agentmain.agent_runner_loop, max_turns)  # type: ignore[attr-defined]
    return (getattr(agentmain, "GenericAgent", None) or agentmain.GeneraticAgent)()


def limited(loop: Callable[..., Any], max_turns: int) -> Callable[..., Any]:
    """The agent's loop with another limit of turns: its own is a constant in the code."""

    def run(*args: Any, **kwargs: Any) -> Any:
        return loop(*args, **{**kwargs, "max_turns": max_turns})

    return run


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # Threads that still read a command's output must not keep a finished agent alive.
    os._exit(code)
