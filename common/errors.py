"""The root of the suite's own errors, and what each kind of error means for a case.

Every error that the suite raises on purpose is a `ClawbenchError`; many are also a subclass of a builtin. Each
class says how it ends a case, and whether the case is retried. `known_error` translates the
exceptions of the Docker SDK and of a full disk. Any other exception is a bug in the suite and keeps its
traceback.
"""

from __future__ import annotations

import errno
import os
import shutil
from typing import ClassVar, Literal

CaseOutcome = Literal["infrastructure", "run_cost_limit"]
"""The outcomes (`evaluation/outcomes.py`) that an error can end a case with."""


class ClawbenchError(Exception):
    """An error with a message for the user: what is wrong, and what to do next."""

    outcome: ClassVar[CaseOutcome | None] = None
    """The outcome of a case that it ends; None if it ends the command or is caught earlier."""
    is_retried: ClassVar[bool] = False
    """Whether another attempt of the case, moments later, may succeed."""
    quotes_engine: ClassVar[bool] = False
    """Whether its message may quote the Docker engine, which reports a full disk in words."""


class NotBegunError(ClawbenchError):
    """A case did not begin: the spend limit is reached, a disk is full or the gateway is gone. It can be resumed."""


class InfrastructureError(ClawbenchError):
    """Something that a claw needs failed: Docker, an image, the gateway, the provider, a disk, the evaluation."""

    outcome = "infrastructure"
    is_retried = True


class LastingError(InfrastructureError):
    """An infrastructure error that another attempt would only repeat, such as a missing image."""

    is_retried = False


class NotReadyError(InfrastructureError):
    """Something that every run needs is not there: the engine, a disk, the gateway, the provider or the account.

    If it is raised before the first case begins, the command ends with an exit status of its own.
    """


class EngineError(NotReadyError):
    """The Docker engine could not be reached, or it failed."""


class DiskError(LastingError, NotReadyError):
    """A disk is full, over its quota or read-only: this machine's, or the engine's."""


_DISK_FAULTS = {
    errno.ENOSPC: "the disk is full: free some space",
    errno.EDQUOT: "the disk quota is used up: free some space",
    errno.EROFS: "the disk is read-only: make it writable",
}


def known_error(error: BaseException) -> ClawbenchError | None:
    """Translate an exception into one of the suite's own errors.

    Args:
        error: whatever was raised.

    Returns:
        the error itself if it is a `ClawbenchError`; a `DiskError` or `EngineError` if a disk or the Docker engine
        caused it; None if it is a bug in the suite, which keeps its traceback.
    """
    # imported only here: most commands meet no error, and docker is slow to import
    from docker.errors import DockerException  # noqa: PLC0415
    from requests.exceptions import RequestException  # noqa: PLC0415
    from urllib3.exceptions import HTTPError  # noqa: PLC0415

    known: ClawbenchError | None = None
    if advice := _disk_fault(error, DockerException):
        known = DiskError(f"{advice}, then run the same command again (finished cases are kept)")
    elif isinstance(error, ClawbenchError):
        return error
    # reading a stream of the engine raises the last three
    elif isinstance(error, DockerException | RequestException | HTTPError | ConnectionError | TimeoutError):
        known = EngineError(f"{error}" or type(error).__name__)
    if known is not None:
        known.__cause__ = error
    return known


def _disk_fault(error: BaseException | None, engine_error: type[BaseException]) -> str | None:
    """What to do about the disk that an error comes from; None if no disk is to blame.

    Args:
        error: checked together with its causes.
        engine_error: the class of the Docker SDK's errors. They have no error number, and neither have those of
            copying a folder: their messages are searched.
    """
    while error is not None:
        if isinstance(error, OSError) and error.errno in _DISK_FAULTS:
            return _DISK_FAULTS[error.errno]
        if isinstance(error, engine_error | shutil.Error) or getattr(error, "quotes_engine", False):
            said = str(error).lower()
            found = next((number for number in _DISK_FAULTS if os.strerror(number).lower() in said), None)
            if found is not None:
                return _DISK_FAULTS[found]
        error = error.__cause__ or error.__context__
    return None
