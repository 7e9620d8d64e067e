"""The private names of pytest and pytest-xdist that the suite uses are there, in the versions that it allows."""

from __future__ import annotations

import re
from importlib.metadata import requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from support.bench_run import ROOT
from xdist.remote import WorkerInteractor

from clawbench.pytest_plugin.private_names import compile_expression

ALLOWED = {"clawbench/pytest_plugin/private_names.py"}
PRIVATE = re.compile(
    r"from _pytest|import _pytest|\b(session|config|node|sched|worker|terminal\w*)\._[a-z]|_rinfo"
)


@pytest.mark.parametrize("name", ["pytest", "pytest-xdist"])
def test_the_installed_version_is_in_the_pinned_range(name: str) -> None:
    (wanted,) = [one for text in requires("clawbench") or () if (one := Requirement(text)).name == name]
    assert version(name) in wanted.specifier
    assert "<" in str(wanted.specifier), "private names may change with a major version"


def test_no_other_file_reaches_into_pytest() -> None:
    rooms = (
        "adapters",
        "clawbench",
        "common",
        "demo",
        "evaluation",
        "gateway",
        "records",
        "reports",
        "tests_bench",
    )
    files = [path for room in rooms for path in (ROOT / room).rglob("*.py")]
    found = {str(path.relative_to(ROOT)) for path in files if PRIVATE.search(path.read_text())}
    assert found == ALLOWED


@pytest.mark.parametrize(
    ("expression", "names", "expected"),
    [
        ("nanobot and not rust", {"nanobot", "c"}, True),
        ("nanobot and not rust", {"nanobot", "rust"}, False),
        ("a-1 or (b and c)", {"b", "c"}, True),
    ],
)
def test_an_expression_is_evaluated_as_pytest_does(expression: str, names: set[str], *, expected: bool) -> None:
    assert compile_expression(expression)(names.__contains__) is expected


def test_a_malformed_expression_is_a_syntax_error() -> None:
    with pytest.raises(SyntaxError):
        compile_expression("nanobot and (")


def test_a_worker_of_pytest_xdist_has_what_is_replaced() -> None:
    source = Path(WorkerInteractor.__module__.replace(".", "/"))
    assert source.name == "remote"
    names = set(WorkerInteractor.run_one_test.__code__.co_names)
    assert {"item_index", "nextitem_index", "torun", "get", "sendevent", "items"} <= names
