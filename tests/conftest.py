"""What holds for all tests, wherever they are run.

- No property test fails for being slow: how long an example takes says nothing on a shared machine.
- Shells start background jobs with Ctrl-C ignored, and children inherit that. Tests interrupt processes, so it is
  undone here.
- Tests start thousands of Python processes. They share the compiled files.
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
