"""Waiting for what a test needs to have happened, however long a busy machine takes for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import pytest

T = TypeVar("T")

LONGEST = 300.0
"""Seconds after which what a test waits for is taken never to come."""


def wait_for(condition: Callable[[], T], what: str = "") -> T:
    """Poll until a condition holds.

    Args:
        condition: called every 20 ms until what it returns is true.
        what: what is waited for, for the message of the failure.

    Returns:
        What the condition returned.
    """
    deadline = time.monotonic() + LONGEST
    while not (found := condition()):
        if time.monotonic() > deadline:
            pytest.fail(f"waited {LONGEST:.0f} s in vain: {what or condition}")
        time.sleep(0.02)
    return found
