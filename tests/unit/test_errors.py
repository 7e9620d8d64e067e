"""Which exceptions are infrastructure errors, and which are faults of the suite itself."""

from __future__ import annotations

import errno
import shutil
from importlib.util import find_spec

import pytest
from docker.errors import APIError, DockerException, ImageNotFound
from requests.exceptions import ConnectionError as EngineGone
from requests.exceptions import ReadTimeout
from urllib3.exceptions import ProtocolError

from clawbench.run.worker_context import NoEngineError, connect
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
        (shutil.Error([("/a", "/b", "[Errno 28] No space left on device: '/b'")]), "full"),
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


def denied() -> DockerException:
    """As the SDK raises it, with the system's own error at the end of the chain."""
    error = DockerException("Error while fetching server API version")
    error.__context__ = EngineGone("Connection aborted.")
    error.__context__.__context__ = PermissionError(errno.EACCES, "Permission denied")
    return error


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("unix:///nowhere", "unix:///nowhere: No such file or directory. To do: start it"),
        ("tcp://127.0.0.1:1", "Connection refused. To do: start it"),
        ("bogus://x", "Invalid bind address protocol: bogus://x. To do: set DOCKER_HOST to an address"),
        ("ssh://x", "the package paramiko is missing. To do: install paramiko"),
    ],
)
def test_an_engine_that_can_not_be_reached_is_told_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, address: str, says: str
) -> None:
    if address.startswith("ssh") and find_spec("paramiko"):
        pytest.skip("paramiko is installed")
    monkeypatch.setenv("DOCKER_HOST", address)
    with pytest.raises(NoEngineError) as raised:
        connect(timeout=30)
    assert says in str(raised.value)
    assert "Errno" not in str(raised.value)


def test_an_engine_that_refuses_this_user_is_not_said_to_be_missing() -> None:
    said = str(NoEngineError(denied()))
    assert "this user may not use it (Permission denied)" in said
    assert "usermod -aG docker" in said
    assert "start it" not in said
