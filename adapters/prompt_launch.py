"""Starts a claw inside the container, on a prompt from a file.

A claw that takes a prompt only as an argument can't be given a long one, since the kernel limits an argument to
128 KiB. An element of `sys.argv` may have any length, so the claw's own module is run in this process. Run as
`python3 -I prompt_launch.py PACKAGES MODULE PROMPT_FILE OPTION ARGUMENT...`. The prompt becomes `OPTION=<text>`
behind the arguments: one element, so that a leading dash in it is not taken for an option. "{}" in PACKAGES stands
for Python's version, as in 3.11.
"""

import runpy
import site
import sys
from pathlib import Path


def main() -> None:
    """Run `MODULE ARGUMENT... OPTION=<the file's text>`."""
    packages, module, prompt_file, option, *arguments = sys.argv[1:]
    packages = packages.format("{}.{}".format(*sys.version_info))
    sys.path.insert(0, packages)
    site.addsitedir(packages)
    prompt = Path(prompt_file).read_bytes().decode("utf-8")
    sys.argv = [module, *arguments, f"{option}={prompt}"]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
