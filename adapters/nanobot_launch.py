"""Starts nanobot inside the container, on a prompt from a file.

nanobot takes a prompt as an argument only, and the kernel allows an argument 128 KiB. An element of
`sys.argv` may be of any length, so its own entry point is run in this process. Run as
`python3 -I nanobot_launch.py PACKAGES PROMPT_FILE ARGUMENT...`: with -I, neither the repository under test
nor PYTHON* variables decide what is imported, and the commands that the claw starts inherit no import path.
"{}" in PACKAGES stands for the Python's version, as in 3.11.
"""

import runpy
import site
import sys
from pathlib import Path


def main() -> None:
    """Run `nanobot agent --message=<the file's text> ARGUMENT...`."""
    packages, prompt_file, *arguments = sys.argv[1:]
    packages = packages.format("{}.{}".format(*sys.version_info))
    sys.path.insert(0, packages)
    site.addsitedir(packages)
    prompt = Path(prompt_file).read_bytes().decode("utf-8")
    # One element with "=": a leading dash in the prompt can't become an option.
    sys.argv = ["nanobot", "agent", f"--message={prompt}", *arguments]
    runpy.run_module("nanobot", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
