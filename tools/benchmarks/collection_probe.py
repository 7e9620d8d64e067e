"""A pytest plugin for `tools.benchmarks.collection`: what collecting took in this process, and its memory.

Each process writes a file into the folder that `CLAWBENCH_COLLECTION_PROBE` names.
"""

from __future__ import annotations

import json
import os
import resource
import time
from collections.abc import Generator
from pathlib import Path

import pytest

VARIABLE = "CLAWBENCH_COLLECTION_PROBE"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Measure collection; a controller of workers collects nothing and writes nothing."""
    began = time.perf_counter()
    result = yield
    seconds = time.perf_counter() - began
    if session.items:
        found = {
            "items": len(session.items),
            "seconds": seconds,
            "peak_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        }
        Path(os.environ[VARIABLE], f"{os.getpid()}.json").write_text(json.dumps(found), encoding="utf-8")
    return result
