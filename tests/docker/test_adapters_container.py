"""The claws for real: in a container, against a scripted model, with what is hard about prompts and budgets.

Each claw is run twice, and the tests look at what each run left: once to its end, once into its limit of turns.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from support.adapter_world import (
    PATH,
    SUBJECTS,
    Run,
    Subject,
    claws_workspace,
    connected,
    embedded_image,
    make_task,
    run_claw,
    user_text,
)

from adapters.base import NotInstalledError
from adapters.registry import adapter
from adapters.runtimes import container_python
from workspace.prepare import PreparedImage

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def engine() -> Iterator[docker.DockerClient]:
    with connected() as client:
        yield client


@pytest.fixture(scope="module")
def image(engine: docker.DockerClient) -> PreparedImage:
    return embedded_image(engine)


@pytest.fixture(scope="module", params=SUBJECTS, ids=lambda subject: subject.name)
def subject(request: pytest.FixtureRequest) -> Subject:
    found: Subject = request.param
    try:
        adapter(found.name).runtime()
    except NotInstalledError as error:
        pytest.skip(str(error))
    return found


@pytest.fixture(scope="module")
def finished(
    engine: docker.DockerClient, image: PreparedImage, subject: Subject, tmp_path_factory: pytest.TempPathFactory
) -> Run:
    """A prompt of 64 KiB, one tool call, a closing text."""
    session = tmp_path_factory.mktemp(subject.name)
    return run_claw(engine, image, subject, session, size=1 << 16, calls=1, max_turns=5)


@pytest.fixture(scope="module")
def endless(
    engine: docker.DockerClient, image: PreparedImage, subject: Subject, tmp_path_factory: pytest.TempPathFactory
) -> Run:
    """The longest prompt that it must take, and a model that calls its tool for ever."""
    session = tmp_path_factory.mktemp(subject.name)
    return run_claw(engine, image, subject, session, size=subject.longest, calls=1000, max_turns=4)


def test_it_ends_well(finished: Run) -> None:
    assert finished.result.exit_code == 0, finished.result
    assert [request["model"] for request in finished.requests] == ["vendor/m-1"] * 2


def test_prompts_arrive_whole(finished: Run, endless: Run) -> None:
    for done in (finished, endless):
        assert done.prompt in user_text(done.requests[0])
        assert not done.was_tricked


def test_the_session_is_saved(finished: Run) -> None:
    kept = b"".join(path.read_bytes() for path in finished.session.rglob("*") if path.is_file())
    assert b"made.txt" in kept
    assert b"Finished." in kept


def test_the_usage_is_read_and_the_session_stays_as_it_was_saved(finished: Run, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in finished.session.rglob("*") if path.is_file()}
    assert finished.claw.usage(finished.session, finished.result.stdout) == finished.subject.usage
    assert before == {path: path.read_bytes() for path in finished.session.rglob("*") if path.is_file()}
    shutil.copytree(finished.session, tmp_path / "moved")
    assert finished.claw.usage(tmp_path / "moved", finished.result.stdout) == finished.subject.usage


def test_the_shell_tool_has_the_images_environment_and_starts_in_the_repository(finished: Run) -> None:
    environment, folder = finished.made.decode().splitlines()
    probe, path, home = environment.split("|")
    assert (probe, home, folder) == ("seen", "/root", "/testbed")
    assert [entry for entry in PATH.split(":") if entry not in path.split(":")] == []
    assert path.startswith("/usr/local/sbin:/usr/local/bin:")


def test_agent_files_are_all_declared(finished: Run, endless: Run) -> None:
    assert finished.status == b""
    assert endless.status == b""


def test_what_reaches_out_of_the_case_is_not_offered(finished: Run) -> None:
    offered = {tool["function"]["name"] for tool in finished.requests[0]["tools"]}
    assert finished.subject.call("")[0] in offered
    assert not offered & finished.subject.not_offered


def test_the_budget_of_turns_is_kept(endless: Run) -> None:
    with_tools = [request for request in endless.requests if request.get("tools")]
    assert len(with_tools) == 4
    assert len(endless.requests) <= 5


def test_a_python_that_does_not_fit_is_said_with_what_to_do(
    engine: docker.DockerClient, image: PreparedImage, subject: Subject
) -> None:
    if subject.name in ("openclaw", "zeroclaw"):
        pytest.skip("it is no Python claw")
    if container_python().mounts:
        pytest.skip("a standalone Python is mounted, which fits")
    claw = adapter(subject.name)
    with claws_workspace(engine, image, claw) as shell:
        shell.run(["mv", "/usr/bin/python3", "/usr/bin/python3.gone"], timeout=120)
        with pytest.raises(NotInstalledError, match="CLAW_PYTHON_HOME"):
            claw.create_agent(shell, make_task("Do it."))
