"""Unique names for processes, so that other processes can tell whether one is still running.

A name has machine, pid and start time. So a reused pid is not mistaken for the former process, and a process on another
machine (or in a container with its own pids) is not mistaken for one that has ended.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path


@cache
def machine() -> str:
    """Identifies the kernel's boot and the pid namespace: a container may have its own."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}.{Path('/proc/self/ns/pid').stat().st_ino}"


def start_of(pid: int) -> str | None:
    """The start time of a process in clock ticks since boot; None if it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # the command's name is in parentheses and may contain anything, spaces and parentheses included
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" else fields[19]


def this_process() -> str:
    """The name of this process."""
    pid = os.getpid()
    return f"{machine()}:{pid}:{start_of(pid)}"


def has_ended(pid: int) -> bool:
    """Whether a process has ended, even if its parent has not reaped it yet."""
    return start_of(pid) is None


def is_gone(name: str) -> bool:
    """Whether the process of that name has ended; False if that can't be told from here."""
    where, _, rest = name.partition(":")
    pid, _, started = rest.partition(":")
    if where != machine():
        return False  # an earlier boot and another machine can't be told apart
    return not pid.isdigit() or start_of(int(pid)) != started
