"""Which exceptions are infrastructure errors, and which are faults of the suite itself."""

from __future__ import annotations

import errno

import pytest
from docker.errors import APIError, DockerException, ImageNotFound
from requests.exceptions import ConnectionError as EngineGone
from requests.exceptions import ReadTimeout
from urllib3.exceptions import ProtocolError

from common.errors import (
    ClawbenchError,
    DiskError,
    EngineError,
    InfrastructureError,
    LastingError,
    known_error,
)
from workspace.workspace_errors import WorkspaceError


@pytest.mark.parametrize("error", [ClawbenchError("x"), InfrastructureError("x"), LastingError("x")])
def test_an_error_of_the_suite_stands_for_itself(error: ClawbenchError) -> None:
    assert known_error(error) is error


@pytest.mark.parametrize(
    "error",
    [
        DockerException("x"),
        ImageNotFound("x"),
        EngineGone("x"),
        ReadTimeout("x"),
        ConnectionResetError("x"),
        ProtocolError("x"),
        DockerException(),
    ],
)
def test_a_broken_engine_is_an_infrastructure_error_that_is_retried(error: Exception) -> None:
    known = known_error(error)
    assert type(known) is EngineError
    assert (known.outcome, known.is_retried) == ("infrastructure", True)
    assert str(known) == (str(error) or "DockerException")
    assert known.__cause__ is error


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OSError(errno.ENOSPC, "x"), "full"),
        (OSError(errno.EDQUOT, "x"), "quota"),
        (OSError(errno.EROFS, "x"), "read-only"),
        (APIError("failed to register layer: write /x: no space left on device"), "full"),
        (WorkspaceError("export: write /x: No space left on device"), "full"),
    ],
)
def test_a_full_disk_is_known_whoever_reports_it(error: Exception, says: str) -> None:
    wrapped = InfrastructureError("the engine could not create a container")
    wrapped.__cause__ = error
    for met in (error, wrapped):
        known = known_error(met)
        assert type(known) is DiskError
        assert (known.outcome, known.is_retried) == ("infrastructure", False)
        assert says in str(known)


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(errno.ENOENT, "no such file", "prompts/default.txt"),
        PermissionError(errno.EACCES, "x"),
        ValueError("no space left on device"),
        KeyError("x"),
        AssertionError("x"),
    ],
)
def test_any_other_exception_is_a_fault_of_the_suite(error: Exception) -> None:
    assert known_error(error) is None


def test_words_of_a_provider_or_a_claw_do_not_blame_a_disk() -> None:
    error = InfrastructureError("the provider failed (HTTP 500: No space left on device)")
    assert known_error(error) is error
