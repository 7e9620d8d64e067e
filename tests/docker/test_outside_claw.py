"""Claws from outside the tree: the example of docs/adding-a-claw.md for real, and what is refused."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bench_run import ROOT, BenchRun, environment, run_bench

from adapters import registry
from adapters.adapter_check import misfits
from adapters.base import Adapter, BadOptionError, apis_of, has_own_config
from adapters.nanobot.nanobot_adapter import NanobotAdapter
from adapters.registry import BadAdapterError
from clawbench.pytest_plugin import hooks
from clawbench.pytest_plugin.reporting import whose_bug
from clawbench.pytest_plugin.selection import know_claws

PAGE = (ROOT / "docs" / "adding-a-claw.md").read_text()
ONE_ID = "demo__cronspan-118"


def block(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example's module."""
    folder = tmp_path_factory.mktemp("module")
    (folder / "toyclaw.py").write_text(block("python"))
    return folder


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the example was installed into by pip, with nothing but what is here."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("target")
    (source / "toyclaw.py").write_text(block("python"))
    (source / "pyproject.toml").write_text(block("toml"))
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--quiet", "--target", str(target)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(source)], check=True)
    return target


def pytest_says(folder: Path, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=ROOT,
        env=environment(PYTHONPATH=str(folder)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def test_the_example_is_short() -> None:
    assert len(block("python").splitlines()) < 60


ODD_ONES = """
from adapters.base import TokenUsage

class Miscounting(ToyClaw):
    name = "miscounting"

    def usage(self, session, stdout):
        return TokenUsage(output=1)

class Late(ToyClaw):
    name = "late"

    def send_task(self, shell, task):
        super().send_task(shell, task)
        return shell.run(["sleep", "infinity"], timeout=1)

def pytest_clawbench_adapters():
    return [ToyClaw(), Miscounting(), Late()]
"""
"""A claw that counts its tokens wrongly, and one that has not ended when its budget is used up."""


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> BenchRun:
    """A run of the example and of two claws that are like it, from one local module."""
    folder = tmp_path_factory.mktemp("three")
    (folder / "toyclaw.py").write_text(f"{block('python')}\n{ODD_ONES}")
    which = ("-k", "(toyclaw or miscounting or late) and cronspan")
    return run_bench(folder, "toy", "-p", "toyclaw", *which, PYTHONPATH=str(folder))


@pytest.mark.docker
def test_a_local_module_is_a_claw(three: BenchRun) -> None:
    run = three
    assert (run.exit_code, run.counts) == (0, {"passed": 3}), run.output
    folder = run.folder / "toyclaw" / ONE_ID
    assert json.loads((folder / "metadata.json").read_text())["outcome"] == "resolved"
    assert json.loads((folder / "usage.json").read_text())["gateway"]["tool_surface"] == ["shell"]
    assert json.loads((folder / "manifest.json").read_text())["allowed_tools"] == ["shell"]
    assert json.loads((folder / "manifest.json").read_text())["claw"]["version"] == "1.0"
    session = json.loads((folder / "session" / "session.json").read_text())
    assert session[0]["content"] == (folder / "prompt.txt").read_text()
    names = {"toyclaw", "miscounting", "late"}
    assert {row["model_name_or_path"] for row in run.predictions()} == {
        f"{name}/scripted:oracle" for name in names
    }
    assert json.loads((run.folder / "manifest.json").read_text())["claws"].keys() == names


@pytest.mark.docker
def test_an_installed_package_is_a_claw_in_workers_and_for_the_bare_adapter(package: Path, tmp_path: Path) -> None:
    options = ["-n", "1", "-k", "toyclaw and cronspan", "--collect=message-fuzzy", "--model=scripted:chatty"]
    run = run_bench(tmp_path, "toy", *options, PYTHONPATH=str(package))
    assert run.outcomes() == {ONE_ID: "resolved"}, run.output
    assert [row["model_name_or_path"] for row in run.predictions()] == ["toyclaw-message-fuzzy/scripted:chatty"]
    assert set(run.junit()) == {f"test_resolved[toyclaw-{ONE_ID}]"}


@pytest.mark.docker
def test_a_claw_that_miscounts_its_tokens_is_warned_of(three: BenchRun) -> None:
    assert "WARNING: miscounting and the gateway count differently in 1 of 1 cases" in three.output
    [told] = json.loads((three.folder / "miscounting" / ONE_ID / "usage.json").read_text())["mismatches"]
    assert told.startswith("output: the claw says 1, the gateway counted ")


@pytest.mark.docker
def test_a_patch_that_resolves_passes_though_the_budget_was_used_up(three: BenchRun) -> None:
    """As in the paper: what was left is judged."""
    case = json.loads((three.folder / "late" / ONE_ID / "metadata.json").read_text())
    assert (case["ending"], case["outcome"]) == ("timeout", "resolved")


def test_it_is_parametrized_beside_the_others_and_selected_by_name(module: Path) -> None:
    _, all_claws = pytest_says(module, "-p", "toyclaw", "--collect-only", "-q", "-m", "demo", "-k", "cronspan")
    found = re.findall(r"\[(.*)\]", all_claws)
    assert [name for name in found if name.startswith(("nanobot", "toy"))] == [
        f"nanobot-{ONE_ID}", f"toyclaw-{ONE_ID}"
    ]  # fmt: skip
    _, named = pytest_says(module, "-p", "toyclaw", "--collect-only", "-q", "-k", "toyclaw")
    assert len(re.findall(r"\[toyclaw-demo__", named)) == len(re.findall(r"\[", named)) == 10
    _, without = pytest_says(module, "--collect-only", "-q", "-k", "toyclaw")
    assert "[toyclaw" not in without


def clawbench_says(folder: Path, *arguments: str, **extra: str) -> tuple[int, str]:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("clawbench")), *arguments],
        cwd=ROOT,
        env=environment(PYTHONPATH=str(folder), **extra),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "variables"),
    [(["-p", "toyclaw"], {}), ([], {"PYTEST_PLUGINS": "toyclaw"})],
    ids=["p", "variable"],
)
def test_a_local_module_is_listed_beside_the_others(
    module: Path, arguments: list[str], variables: dict[str, str]
) -> None:
    exit_code, said = clawbench_says(module, "claws", *arguments, **variables)
    assert exit_code == 0, said
    assert "toyclaw 1.0 its own package" in said
    assert "zeroclaw" in said
    assert "toyclaw" not in clawbench_says(module, "claws")[1]


def test_an_installed_package_is_listed_and_there_is_nothing_to_install(package: Path) -> None:
    assert "toyclaw 1.0 its own package" in clawbench_says(package, "claws")[1]
    exit_code, said = clawbench_says(package, "install", "toyclaw")
    assert exit_code == 0, said
    assert f"toyclaw 1.0 is installed already: {package}" in said


def test_what_is_missing_of_a_claw_and_how_to_get_it_is_told(tmp_path: Path) -> None:
    missing = (
        "from adapters.base import NotInstalledError\n"
        "def nowhere(self): raise NotInstalledError('toyclaw needs [toys]')\n"
        "ToyClaw.runtime = nowhere\n"
    )
    (tmp_path / "toyclaw.py").write_text(f"{block('python')}\n{missing}")
    exit_code, said = clawbench_says(tmp_path, "claws", "-p", "toyclaw")
    assert exit_code == 0, said
    assert "toyclaw - - toyclaw needs [toys]" in said
    exit_code, said = clawbench_says(tmp_path, "install", "toyclaw", "-p", "toyclaw")
    assert exit_code == 2, said
    assert "which can't install it; pip install toyclaw" in said


def test_a_plugin_that_can_not_be_taken_in_is_told_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "toyclaw.py").write_text(f"{block('python')}\nToyClaw.name = 'nanobot'\n")
    for name, message in (("toyclaw", "the name 'nanobot' is taken"), ("no_such_module", "no_such_module")):
        exit_code, said = clawbench_says(tmp_path, "claws", "-p", name)
        assert exit_code == 2, said
        assert message in said
        assert "Traceback" not in said


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("ToyClaw.name = 'nanobot'", "the name 'nanobot' is taken"),
        ("ToyClaw.name = 'rust'", "the name 'rust' is taken"),
        ("ToyClaw.name = 'Toy-Claw'", "name: 'Toy-Claw' is not of the form"),
        ("del ToyClaw.final_message", "toyclaw.ToyClaw is not an adapter: it has no final_message()"),
        ("def pytest_clawbench_adapters(): return [ToyClaw]", "it is a class, not an instance"),
        ("def pytest_clawbench_adapters(): return ToyClaw()", "must return adapters in a list"),
    ],
)
def test_what_does_not_fit_is_a_usage_error(code: str, message: str) -> None:
    plugin = ModuleType("toyclaw")
    exec(f"{block('python')}\n{code}\n", plugin.__dict__)  # noqa: S102 - our own page
    manager = pytest.PytestPluginManager()
    manager.add_hookspecs(hooks)
    manager.register(plugin)
    with pytest.raises(pytest.UsageError, match=re.escape(message)):
        know_claws(manager)


def test_what_does_not_fit_ends_the_command_with_a_message(tmp_path: Path) -> None:
    (tmp_path / "toyclaw.py").write_text(f"{block('python')}\nToyClaw.name = 'nanobot'\n")
    exit_code, said = pytest_says(tmp_path, "-p", "toyclaw", "--collect-only")
    assert exit_code == 4
    assert "the name 'nanobot' is taken" in said
    assert "Traceback" not in said


@pytest.fixture
def toy() -> Iterator[Any]:
    scope: dict[str, Any] = {"__file__": "toyclaw.py", "__name__": "toyclaw"}
    exec(block("python"), scope)  # noqa: S102 - our own page
    yield scope["ToyClaw"]()
    registry.know_outside([])


def test_an_exception_of_an_adapter_is_told_as_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The author of a claw looks for it in the adapter then, and not in the suite."""
    broken = "\n    def send_task(self, shell, task):\n        return shell.no_such_thing\n"
    (tmp_path / "broken_claw.py").write_text(f"{block('python')}\n\nclass Broken(ToyClaw):{broken}")
    monkeypatch.syspath_prepend(tmp_path)
    adapter = import_module("broken_claw").Broken()
    with pytest.raises(AttributeError) as raised:
        adapter.send_task(object(), None)
    line = len((tmp_path / "broken_claw.py").read_text().splitlines())
    assert whose_bug(adapter, raised) == (
        f"the adapter of toyclaw failed at {tmp_path / 'broken_claw.py'}, line {line}"
    )
    with pytest.raises(TypeError) as of_suite:
        misfits()  # type: ignore[call-arg]
    assert whose_bug(adapter, of_suite) == "a bug in the suite itself"


def test_the_registry_knows_it_until_it_is_told_of_others(toy: Any) -> None:
    registry.know_outside([toy])
    assert registry.claws() == (*registry.CLAWS, "toyclaw")
    assert registry.adapter("toyclaw") is toy
    assert registry.installed("toyclaw")
    registry.know_outside([])
    with pytest.raises(BadOptionError):
        registry.adapter("toyclaw")


def test_two_of_one_name_and_a_prompt_of_its_own_are_refused(toy: Any) -> None:
    with pytest.raises(BadAdapterError, match="is taken"):
        registry.know_outside([toy, toy])
    toy.prompt_file = "bare.txt"
    with pytest.raises(BadAdapterError, match="the same words"):
        registry.know_outside([toy])


def test_every_claw_of_the_suite_fits() -> None:
    for name in registry.CLAWS:
        assert misfits(registry.adapter(name)) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("name", None),
        ("agent_files", "/memory/"),
        ("agent_files", ["/memory/"]),
        ("allowed_tools", "exec"),
        ("min_memory", "much"),
        ("min_pids", "64"),
        ("apis", ()),
        ("apis", ("chat", "telepathy")),
        ("has_own_config", "yes"),
        ("usage", None),
        ("send_task", lambda shell: None),  # noqa: ARG005
        ("usage", lambda session, stdout, more: None),  # noqa: ARG005
    ],
)
def test_what_does_not_fit_is_named(name: str, value: object) -> None:
    candidate = NanobotAdapter()
    setattr(candidate, name, value)
    (fault,) = misfits(candidate)
    assert name in fault


def test_what_has_a_value_by_itself_need_not_be_declared(toy: Any) -> None:
    assert misfits(toy) == []
    assert not hasattr(toy, "apis")
    assert apis_of(toy) == ("chat",)
    assert not has_own_config(toy)


def test_the_protocols_own_empty_methods_are_none() -> None:
    class Empty(Adapter):  # type: ignore[misc]
        name = "empty"

    assert "it has no send_task()" in misfits(Empty())  # type: ignore[abstract]


@given(st.from_regex(r"[a-z][a-z0-9_]{0,20}", fullmatch=True))
def test_any_good_name_is_found_in_a_command(name: str) -> None:
    candidate = NanobotAdapter()
    candidate.name = name  # type: ignore[misc]
    assert misfits(candidate) == []
