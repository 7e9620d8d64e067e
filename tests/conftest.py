"""What holds for all tests, wherever they are run.

No property test fails for being slow: how long an example takes says nothing on a shared machine. And a suite that
was begun in the background, where shells have Ctrl-C ignored, hands that on to no process that a test interrupts.
Tests start some thousand processes of the suite's own; what Python compiles for one is there for the next.
"""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings

settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
