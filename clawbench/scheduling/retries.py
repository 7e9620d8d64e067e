"""How often a case is run again within a command, and for what: infrastructure alone, never what a claw did.

An attempt that broke, or whose worker died, is counted in a file of the case: the count outlives the worker. The
journal has a line of each as well; what it asked the model stays in the run, and counts as spent.
"""

from __future__ import annotations

import errno
import json
import shutil
from pathlib import Path

from adapters.base import BadOptionError, NotInstalledError
from clawbench.disk import is_full
from evaluation.harness4 import HarnessMissingError
from evaluation.instances import InstanceError
from records.files import write_atomically
from workspace.errors import ImageMissingError, PreparationError

_FIRST_PAUSE, _LONGER = 2.0, 4
"""Seconds before the second attempt, and how many times as long before each further one: what broke may mend."""

_LASTING = (
    NotInstalledError,
    BadOptionError,
    InstanceError,
    HarnessMissingError,
    PreparationError,
    ImageMissingError,
)
"""What another attempt finds as it was."""
_LASTING_NUMBERS = {errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM}


class Retries:
    """How often each case of a command was run again, and why."""

    def __init__(self, run: Path) -> None:
        """Name their folder; it is made with the first.

        Args:
            run: the run's folder.
        """
        self._folder = run / ".retries"

    def forget(self) -> None:
        """Begin anew, for a new command."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def reasons(self, case_id: str) -> list[str]:
        """Why a case was run again, attempt by attempt."""
        try:
            found: list[str] = json.loads((self._folder / f"{case_id}.json").read_bytes())
        except FileNotFoundError:
            return []
        return found

    def add(self, case_id: str, why: str) -> int:
        """Count an attempt that is to be followed by another.

        Returns:
            how many there are now.
        """
        reasons = [*self.reasons(case_id), why]
        write_atomically(self._folder / f"{case_id}.json", json.dumps(reasons).encode("utf-8", "surrogatepass"))
        return len(reasons)

    def counts(self) -> list[int]:
        """How often each case was run again that was."""
        return [len(self.reasons(path.stem)) for path in sorted(self._folder.glob("*.json"))]


def pause_before(retry: int) -> float:
    """Seconds to wait before an attempt.

    Args:
        retry: which, from 1.
    """
    return _FIRST_PAUSE * float(_LONGER ** (retry - 1))


def may_pass(error: BaseException) -> bool:
    """Whether what broke an attempt may not be there any more at the next, moments later."""
    if isinstance(error, _LASTING):
        return False
    if isinstance(error, OSError) and error.errno in _LASTING_NUMBERS:
        return False
    return not is_full(error)
