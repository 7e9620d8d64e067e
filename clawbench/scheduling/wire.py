"""How reports come from the workers to the controller: each as one piece of bytes.

pytest-xdist takes what it sends apart down to the last number, in Python, at both ends. For a case with its
figures that takes longer than all else of a verdict that is only repeated.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Generator
from typing import Any

import pytest

from clawbench.fixtures import BENCH

_PACKED = "clawbench_packed"
_SHARED = ("nodeid", "outcome", "when", "worker_id", "testrun_uid")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_report_to_serializable(config: pytest.Config) -> Generator[None, dict[str, Any], dict[str, Any]]:
    """Pack what a worker of a run sends."""
    data = yield
    is_sent = BENCH in config.stash and hasattr(config, "workerinput")
    return {_PACKED: pickle.dumps(data)} if is_sent and data is not None else data


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_report_from_serializable(data: dict[str, Any]) -> Generator[None, object, object]:
    """Unpack it; what all reports of a case say, or all reports, is one string in this process."""
    packed = data.pop(_PACKED, None)
    if packed is not None:
        data |= pickle.loads(packed)  # noqa: S301 - it comes from a process of our own, by a pipe of our own
        data |= {name: sys.intern(data[name]) for name in _SHARED if name in data}
    return (yield)
