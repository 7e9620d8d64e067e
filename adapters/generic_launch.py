"""Starts GenericAgent inside the container, on a prompt from a file, by the interface that its own front ends use.

Its command line would do for neither of its two shapes: `--task` waits minutes for a reply when it is done, and
all modes give up when 120 s (the package) pass without output, which one slow reply or one long test run is enough
for. `put_task` and its queue are in both. Run as
`python3 -I generic_launch.py PACKAGES AGENT_FOLDER PROMPT_FILE LLM_NO MAX_TURNS`; "{}" in PACKAGES stands for the
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
    """Run one task to its end; 1 where the agent's thread died of it."""
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
        is_alive = worker.is_alive()  # asked first: what it says last may come while it is waited for
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
    """The agent of a folder: a package, or the modules of a checkout."""
    # It tells the model that ./temp is where its tools work: that is below the agent's folder.
    os.chdir(folder)
    # Newer ones then leave out the tools that ask the user and that keep something for the next session.
    sys.argv = ["agentmain.py", "--no-user-tools"]
    is_package = (folder / "__init__.py").exists()
    sys.path.insert(0, str(folder.parent if is_package else folder))
    agentmain = import_module(f"{folder.name}.agentmain" if is_package else "agentmain")
    agentmain.agent_runner_loop = limited(agentmain.agent_runner_loop, max_turns)  # type: ignore[attr-defined]
    return (getattr(agentmain, "GenericAgent", None) or agentmain.GeneraticAgent)()


def limited(loop: Callable[..., Any], max_turns: int) -> Callable[..., Any]:
    """The agent's loop with another limit: its own is a number in the code."""

    def run(*args: Any, **kwargs: Any) -> Any:
        return loop(*args, **{**kwargs, "max_turns": max_turns})

    return run


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # Threads that still hold a command's output don't keep a finished agent from ending.
    os._exit(code)
