"""Which cases there are, and which of them a command means.

Cases are the product of claws, listed instances and samples, in one order in every worker. Nothing here reads a
dataset or asks the engine. Two rules keep a command from meaning more than it says: with no instances named, the
embedded task set is meant, which costs nothing; with real instances named, the embedded set is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

import pytest

from adapters.registry import BadAdapterError, claws, installed, know_outside
from clawbench import modes
from clawbench.names import CaseName
from evaluation.lists import LANGUAGE_GROUPS, ListedInstance, ListError, listed_instances, read_instances

_INSTANCES = pytest.StashKey[frozenset[str] | None]()
REAL_SETS = ("full", "lite", "verified_mini", "multilingual")

MARKERS = {
    "demo": "the embedded task set: ten small tasks that need no dataset and no money",
    "full": "the 350 instances: verified_mini and multilingual together",
    "lite": "the published 80-instance subset of full",
    "verified_mini": "50 instances of SWE-bench Verified",
    "multilingual": "the 300 instances of SWE-bench Multilingual",
    **{group: f"instances of the language group {group}" for group in LANGUAGE_GROUPS},
}


def know_claws(plugins: pytest.PytestPluginManager) -> None:
    """Make known what plugins bring by `pytest_clawbench_adapters`.

    Raises:
        pytest.UsageError: it can't be taken in; the message says what and why.
    """
    brought = plugins.hook.pytest_clawbench_adapters()
    if any(not isinstance(adapters, Iterable) for adapters in brought):
        raise pytest.UsageError("pytest_clawbench_adapters must return adapters in a list")
    try:
        know_outside((adapter for adapters in brought for adapter in adapters), reserved=MARKERS)
    except BadAdapterError as error:
        raise pytest.UsageError(str(error)) from error


def know_instances(config: pytest.Config) -> None:
    """Read the file that `--instances` names.

    Raises:
        pytest.UsageError: it can't be read or lists what there is not; the message tells of every line.
    """
    name = config.getoption("--instances")
    try:
        config.stash[_INSTANCES] = read_instances(Path(name)) if name else None
    except ListError as error:
        raise pytest.UsageError(f"--instances {name}: {error}") from error


def _asked_for(expression: str) -> str:
    """A `-k` or `-m` expression without what it rules out, and without parentheses."""
    while True:
        # from the innermost parentheses outwards; those behind a `not` go with it
        shorter = re.sub(r"(?<!\S)not(\s*\([^()]*\)|\s+(?!not\b)[^\s()]+)", " ", expression)
        if shorter == expression:
            shorter = re.sub(r"\(([^()]*)\)", r" \1 ", expression, count=1)
        if shorter == expression:
            return expression
        expression = shorter


def named_claws(config: pytest.Config) -> list[str]:
    """The claws that the command names, in `-k` or in a test id."""
    asked = [_asked_for(config.option.keyword), *_test_ids(config)]
    words = set(re.findall(r"[a-z0-9_]+", " ".join(asked)))
    return [name for name in claws() if name in words]


def _test_ids(config: pytest.Config) -> list[str]:
    return [argument for argument in config.args if "::" in argument]


def wanted_claws(config: pytest.Config) -> list[str]:
    """The claws that cases are made for: those that are named, installed or not, else those that are installed."""
    return named_claws(config) or [name for name in claws() if installed(name)]


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Make the cases: ids begin with `<claw>-<instance_id>`, so that `-k` selects by either."""
    cases = [
        CaseName(claw, listed, sample)
        for claw in wanted_claws(metafunc.config)
        for listed in listed_instances()
        for sample in range(1, metafunc.config.option.samples + 1)
    ]
    parameters = [
        pytest.param(name, id=name.case_id, marks=[getattr(pytest.mark, marker) for marker in name.listed.markers])
        for name in cases
    ]
    metafunc.parametrize("case", parameters, indirect=True)


def name_of(item: pytest.Item) -> CaseName | None:
    """The case that a test is, None for any other test."""
    call = getattr(item, "callspec", None)
    parameter = call.params.get("case") if call is not None else None
    return parameter if isinstance(parameter, CaseName) else None


def is_of_conformance(node_id: str) -> bool:
    """Whether a test is one of the conformance suite's, whose cases are no run's own, but want its gateway."""
    return modes.ROOT / node_id.partition("::")[0] == modes.CONFORMANCE


def case_of(node_id: str) -> CaseName | None:
    """The case that a test id names, None for any other test."""
    name = CaseName.parse(node_id.partition("[")[2].removesuffix("]"))
    return name if name is not None and name.claw in claws() else None


def _listed_of(item: pytest.Item) -> ListedInstance | None:
    """The instance that a test is of: a case's, or that of a check of the instance alone."""
    name = name_of(item)
    if name is not None:
        return name.listed
    call = getattr(item, "callspec", None)
    parameter = call.params.get("gold") if call is not None else None
    return parameter if isinstance(parameter, ListedInstance) else None


def narrow(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave what the command means, after pytest's own `-k` and `-m` did their part."""
    cases = [(item, listed) for item in items if (listed := _listed_of(item)) is not None]
    wanted = config.stash[_INSTANCES]
    if wanted is not None:
        _drop(config, items, {id(item) for item, listed in cases if listed.instance_id not in wanted})
        return
    real = {listed.instance_id for _, listed in cases if not listed.embedded}
    wants_real = bool(real) and _names_real(config, real)
    # who names the embedded set as well gets both
    wants_embedded = not wants_real or _names(config, "demo")
    unwanted = {id(item) for item, listed in cases if not (wants_embedded if listed.embedded else wants_real)}
    _drop(config, items, unwanted)


def _drop(config: pytest.Config, items: list[pytest.Item], dropped: set[int]) -> None:
    """Leave items out, by the `id` of each."""
    if not dropped:
        return
    config.hook.pytest_deselected(items=[item for item in items if id(item) in dropped])
    items[:] = [item for item in items if id(item) not in dropped]


def why_nothing(config: pytest.Config) -> str:
    """Why a command means no case at all, in a line."""
    ruled_out = set(re.findall(r"\w+", config.option.markexpr)) - set(
        re.findall(r"\w+", _asked_for(config.option.markexpr))
    )
    if "demo" in ruled_out and not any(_names(config, name) for name in REAL_SETS):
        return (
            "no case is selected: the embedded tasks are ruled out, and real instances are run only where they "
            f"are named, as in -m lite (there are: {', '.join(REAL_SETS)})"
        )
    if not wanted_claws(config):
        return "no case is selected: no claw is installed; `clawbench claws` lists them"
    return _unknown_id(config) or "no case is selected by -k and -m; `pytest --collect-only -q` lists all"


def _unknown_id(config: pytest.Config) -> str | None:
    """A line for the first test id of the command that no case has, None where there is none."""
    samples = range(1, config.option.samples + 1)
    known = [
        CaseName(claw, one, sample).case_id for claw in claws() for one in listed_instances() for sample in samples
    ]
    for argument in _test_ids(config):
        name = argument.partition("::test_resolved[")[2].removesuffix("]")
        if name and name not in known:
            near = get_close_matches(name, known, n=1)
            return f"no case has the id {name}" + (f"; the nearest is {near[0]}" if near else "")
    return None


def _names_real(config: pytest.Config, left: set[str]) -> bool:
    """Whether the command chose among the real instances, by a marker, a word of their ids or an id.

    Ruling some of them out is no choice: who leaves out one language has not asked for all the others.
    """
    if any(_names(config, name) for name in REAL_SETS):
        return True
    known: Sequence[ListedInstance] = [listed for listed in listed_instances() if not listed.embedded]
    if len(left) == len(known):
        return False
    if _test_ids(config) or getattr(config.option, "lf", False):
        return True
    asked = f"{_asked_for(config.option.keyword)} {_asked_for(config.option.markexpr)}".lower()
    words = set(asked.split()) - {"and", "or", "not", *claws()}
    names = [name.lower() for listed in known for name in (listed.instance_id, *listed.markers)]
    return any(word in name for word in words for name in names)


def _names(config: pytest.Config, marker: str) -> bool:
    return re.search(rf"\b{marker}\b", _asked_for(config.option.markexpr)) is not None
