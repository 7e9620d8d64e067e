"""Creates the cases, and determines which of them a command selects.

Cases are the product of claws, listed instances and samples, in the same order in every worker. Nothing here reads a
dataset or asks the engine. Three rules keep a command from running more than was asked for:

- Claws that are not installed get cases only if the command names them (`--claw`, `-k` or a test id).
- If the command names no instance, it selects those of `--dataset`; without one, the embedded tasks, which cost
  nothing.
- If it names real instances, the embedded tasks are left out, unless the set `demo` is named as well.

A command names a claw or an instance if renaming it would deselect one of its cases. So `-k "not openclaw"` and
`-m "not python"` name nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from adapters.registry import BadAdapterError, claws, installed, know_outside
from clawbench import ROOT
from clawbench.pytest_plugin import modes
from clawbench.pytest_plugin.private_names import compile_expression
from evaluation.lists import (
    DATASET,
    LANGUAGE_GROUPS,
    OTHER_LANGUAGE,
    ListedInstance,
    ListError,
    by_id,
    know_dataset,
    listed_instances,
    read_instances,
)
from records.case_id import CaseId

if TYPE_CHECKING:
    from clawbench.run.made_elsewhere import MadeElsewhere

_SELECTION = pytest.StashKey["Selection"]()
_PREDICTED = pytest.StashKey[Mapping[str, "MadeElsewhere"]]()
REAL_SETS = ("full", "lite", "verified_mini", "multilingual")
SETS = ("demo", *REAL_SETS, DATASET)

CONFORMANCE = "conformance"
COLLECTION_STUDY = "collection_study"

MARKERS = {
    CONFORMANCE: "the conformance suite: what an adapter must get right, one test per requirement; free of cost",
    COLLECTION_STUDY: "the collection study: the same edits reach the judge in three ways; free, without an engine",
    "demo": "the embedded task set: ten small tasks that need no dataset and no money",
    "full": "the 350 instances: verified_mini and multilingual together",
    "lite": "the published 80-instance subset of full",
    "verified_mini": "50 instances of SWE-bench Verified",
    "multilingual": "the 300 instances of SWE-bench Multilingual",
    DATASET: "the instances of --dataset",
    **{group: f"instances of the language group {group}" for group in (*LANGUAGE_GROUPS, OTHER_LANGUAGE)},
}


@dataclass(frozen=True)
class Selection:
    """What a command selects."""

    named_claws: tuple[str, ...]
    """The claws that the command names, installed or not."""
    instances: frozenset[str] | None
    """The ids in the file of `--instances`."""
    sets: tuple[str, ...]
    """The sets of `--set`."""
    predicted: Mapping[str, Collection[str]]
    """The instances with predictions of another tool, by the contender's name; then no claw runs."""
    has_dataset: bool
    """Whether the command has a `--dataset`."""
    names_instances: bool
    """Whether the command names instances, by a marker, a part of their ids or a test id."""
    names_demo: bool
    """Whether the command names the set `demo`."""
    rules_demo_out: bool
    """Whether the command excludes the set `demo` without naming another set."""

    @property
    def claws(self) -> list[str]:
        """The claws that cases are made for: those that are named, otherwise those that are installed."""
        return list(self.named_claws) or [name for name in claws() if installed(name)]

    def wanted(self, listed: list[ListedInstance]) -> Callable[[ListedInstance], bool]:
        """Returns a test for selected instances.

        Args:
            listed: the instances of the cases that pass `-k`, `-m` and the test ids.
        """
        if self.instances is not None:
            instances = self.instances
            return lambda one: one.instance_id in instances
        if self.sets:
            return lambda one: not set(self.sets).isdisjoint(one.markers)
        if self.predicted:
            return lambda _: True
        if self.has_dataset and not (self.names_instances or self.names_demo):
            return lambda one: one.in_dataset
        real = self.names_instances and any(not one.embedded for one in listed)
        return lambda one: (self.names_demo or not real) if one.embedded else real


def know_claws(plugins: pytest.PytestPluginManager, made_elsewhere: Iterable[MadeElsewhere] = ()) -> None:
    """Register the claws that plugins add with `pytest_clawbench_adapters`.

    Args:
        plugins: the plugins.
        made_elsewhere: contenders whose predictions are judged.

    Raises:
        pytest.UsageError: an adapter is invalid; the message says which and why.
    """
    brought = [*plugins.hook.pytest_clawbench_adapters(), list(made_elsewhere)]
    if any(not isinstance(adapters, Iterable) for adapters in brought):
        raise pytest.UsageError("pytest_clawbench_adapters must return adapters in a list")
    try:
        know_outside((adapter for adapters in brought for adapter in adapters), reserved=MARKERS)
    except BadAdapterError as error:
        raise pytest.UsageError(str(error)) from error


def list_dataset(config: pytest.Config, index: str | None) -> str | None:
    """List the instances of `--dataset`.

    Args:
        config: the process's.
        index: in a worker, what this returned in the controller.

    Returns:
        the file that lists them, for the workers; None without `--dataset`.

    Raises:
        pytest.UsageError: the dataset can't be used; the message says why.
    """
    if config.option.dataset is None:
        if DATASET in config.option.set:
            raise pytest.UsageError(f"--set {DATASET}: only with --dataset, whose instances it names")
        know_dataset(())
        return None
    from adapters.runtimes import default_home  # noqa: PLC0415 - only with a dataset, as below
    from clawbench.pytest_plugin.run_settings import revisions  # noqa: PLC0415
    from evaluation.dataset_index import index_of, read_index  # noqa: PLC0415
    from evaluation.instances import InstanceError  # noqa: PLC0415

    try:
        if index is None:
            revision = revisions(config.option.dataset_revision).get(DATASET)
            index = str(index_of(config.option.dataset, revision, default_home() / "datasets"))
        know_dataset(read_index(Path(index)))
    except (InstanceError, OSError, ValueError) as error:
        know_dataset(())
        if not config.option.doctor:  # it tells this with everything else that is lacking
            raise pytest.UsageError(f"--dataset: {error}") from error
    return index


def select(config: pytest.Config) -> None:
    """Resolve what the command selects; `selection` returns it.

    Raises:
        pytest.UsageError: an option names something that does not exist, or an expression is malformed.
    """
    option = config.option
    keyword, marks = _expression(option.keyword, "-k"), _expression(option.markexpr, "-m")
    ids = [CaseId.parse(name) for name in _test_ids(config)]
    file = "test_gold" if option.gold else "test_resolved"

    def matches(claw: str, instance_id: str, markers: Iterable[str]) -> bool:
        case = f"{claw}-{instance_id}" if claw or not option.gold else instance_id
        samples = ("", *(f"-s{sample}" for sample in range(2, option.samples + 1)))

        def selects(sample: str) -> bool:
            names = ["tests_bench", f"{file}.py", f"{file}[{case}{sample}]", *markers]
            return keyword(lambda word: any(word.lower() in name.lower() for name in names))

        return marks(lambda word: word in markers) and any(map(selects, samples))

    def names_claw(claw: str) -> bool:
        return any(
            matches(claw, one.instance_id, one.markers) and not matches("", one.instance_id, one.markers)
            for one in listed_instances()
        )

    known = claws()
    of_ids = {case.claw for case in ids if case is not None}
    predicted = predictions(config)
    named = _known(option.claw, list(predicted) or known, "--claw")
    named = named or tuple(predicted) or tuple(n for n in known if n in of_ids or names_claw(n))
    some = named or tuple(known)
    is_neutral = any(matches(claw, "", ()) for claw in some)
    names_demo = not is_neutral and any(matches(claw, "", ("demo",)) for claw in some)
    config.stash[_SELECTION] = Selection(
        named_claws=named,
        instances=_listed_in(option.instances),
        sets=_known(option.set, SETS, "--set"),
        predicted={name: made.predictions.patches.keys() for name, made in predicted.items()},
        has_dataset=option.dataset is not None,
        names_instances=not is_neutral or bool(ids) or bool(getattr(option, "lf", False)),
        names_demo=names_demo,
        rules_demo_out=is_neutral and not any(matches(claw, "", ("demo",)) for claw in some),
    )


def predictions(config: pytest.Config) -> Mapping[str, MadeElsewhere]:
    """The contenders of `--predictions` by name, read once in each process.

    Raises:
        pytest.UsageError: a file can't be used; the message says which and why.
    """
    if _PREDICTED not in config.stash:
        from clawbench.run.made_elsewhere import contenders  # noqa: PLC0415 - most commands have none
        from evaluation.predictions_file import PredictionsError  # noqa: PLC0415

        try:
            config.stash[_PREDICTED] = contenders(config.option.predictions, by_id())
        except PredictionsError as error:
            raise pytest.UsageError(f"--predictions: {error}") from error
    return config.stash[_PREDICTED]


def selection(config: pytest.Config) -> Selection:
    """What the command selects."""
    return config.stash[_SELECTION]


def means(config: pytest.Config, marker: str) -> bool:
    """Whether the command asks for the conformance suite or the collection study, by its marker or its file."""
    marks = _expression(config.option.markexpr, "-m")
    by_marker = marks(lambda word: word == marker) and not marks(lambda _: False)
    return by_marker or modes.SUITE / f"test_{marker}.py" in modes.named(config)


def _expression(text: str, option: str) -> Callable[[Callable[[str], bool]], bool]:
    if not text:
        return lambda _: True
    try:
        return compile_expression(text)
    except SyntaxError as error:
        # as pytest itself says it, but before anything else happens
        where = f"at column {error.offset}: {error.msg}"
        raise pytest.UsageError(f"Wrong expression passed to '{option}': {text}: {where}") from error


def check_markers(config: pytest.Config) -> None:
    """Check that -m names no unknown marker; pytest would say so only after the collection (raises UsageError)."""
    known = {re.split(r"[:(]", line)[0].strip() for line in config.getini("markers")}
    words = re.findall(r"[\w:+.\[\]\\/-]+", re.sub(r"\(\w+ *=[^)]*\)", "", config.option.markexpr))
    unknown = sorted(set(words) - known - {"and", "or", "not", "True", "False", "None"})
    if unknown:
        near = [found for word in unknown for found in get_close_matches(word, known, n=1)]
        hint = f" (did you mean {', '.join(near)}?)" if near else ""
        raise pytest.UsageError(
            f"Unknown marker(s) in '-m' expression: {', '.join(unknown)}{hint}. Use 'pytest --markers' to see available "
            "markers."
        )


def _known(asked: list[str], known: Iterable[str], option: str) -> tuple[str, ...]:
    names = list(known)
    for name in asked:
        if name not in names:
            near = get_close_matches(name, names, n=1)
            hint = f"; the nearest is {near[0]}" if near else ""
            raise pytest.UsageError(f"{option} {name}: unknown; choose from {', '.join(names)}{hint}")
    return tuple(name for name in names if name in asked)


def _listed_in(file: str | None) -> frozenset[str] | None:
    try:
        return read_instances(Path(file)) if file else None
    except ListError as error:
        raise pytest.UsageError(f"--instances {file}: {error}") from error


def _test_ids(config: pytest.Config) -> list[str]:
    """The parts in brackets of the command's test ids."""
    return [word.partition("[")[2].removesuffix("]") for word in config.args if "::" in word and "[" in word]


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Create the cases: ids begin with `<claw>-<instance_id>`, so that `-k` selects by either."""
    chosen = selection(metafunc.config)
    parameters = [
        pytest.param(case, id=str(case), marks=[getattr(pytest.mark, marker) for marker in listed.markers])
        for claw in chosen.claws
        for listed in listed_instances()
        if claw not in chosen.predicted or listed.instance_id in chosen.predicted[claw]
        for sample in range(1, metafunc.config.option.samples + 1)
        for case in [CaseId(claw, listed.instance_id, sample)]
    ]
    metafunc.parametrize("case", parameters, indirect=True)


def case_of_item(item: pytest.Item) -> CaseId | None:
    """The case of a test; None for any other test."""
    call = getattr(item, "callspec", None)
    parameter = call.params.get("case") if call is not None else None
    return parameter if isinstance(parameter, CaseId) else None


def is_of_conformance(node_id: str) -> bool:
    """Whether a test belongs to the conformance suite, which uses the run's gateway but has no cases of the run."""
    return ROOT / node_id.partition("::")[0] == modes.CONFORMANCE


def case_of(node_id: str) -> CaseId | None:
    """The case that a test id names; None for any other test."""
    case = CaseId.parse(node_id.partition("[")[2].removesuffix("]"))
    return case if case is not None and case.claw in claws() and case.instance_id in by_id() else None


def instances_of(ids: Iterable[str]) -> set[ListedInstance]:
    """The instances of all selected cases, and of gold's checks."""
    found = set()
    for node_id in ids:
        case, name = (
            case_of(node_id),
            node_id.partition(f"{modes.GOLD.name}::")[2].partition("[")[2].removesuffix("]"),
        )
        if case is not None or name in by_id():
            found.add(by_id()[case.instance_id if case is not None else name])
    return found


def listed_of(item: pytest.Item) -> ListedInstance | None:
    """The instance of a case, or of an instance's own check; None for any other test."""
    case = case_of_item(item)
    if case is not None:
        return by_id()[case.instance_id]
    call = getattr(item, "callspec", None)
    parameter = call.params.get("gold") if call is not None else None
    return parameter if isinstance(parameter, ListedInstance) else None


def narrow(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Apply the command's selection to the tests that pytest's own `-k` and `-m` left."""
    cases = [(item, listed) for item in items if (listed := listed_of(item)) is not None]
    is_wanted = selection(config).wanted([listed for _, listed in cases])
    dropped = [item for item, listed in cases if not is_wanted(listed)]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        unwanted = {id(item) for item in dropped}
        items[:] = [item for item in items if id(item) not in unwanted]


def why_nothing(config: pytest.Config) -> str:
    """Why a command selects no case at all, in one line."""
    chosen = selection(config)
    if chosen.rules_demo_out:
        return (
            "no case is selected: the embedded tasks are excluded, and real instances are run only if they are "
            f"named, as in -m lite (the sets are {', '.join(REAL_SETS)})"
        )
    if not chosen.claws:
        return "no case is selected: no claw is installed; `clawbench claws` lists them"
    return _unknown_id(config) or "no case is selected by -k and -m; `pytest --collect-only -q` lists all"


def _unknown_id(config: pytest.Config) -> str | None:
    """An error message about the first test id that matches no case; None if all match."""
    samples = range(1, config.option.samples + 1)
    known = [str(CaseId(claw, one, sample)) for claw in claws() for one in by_id() for sample in samples]
    for name in _test_ids(config):
        if name not in known:
            near = get_close_matches(name, known, n=1)
            return f"no case has the id {name}" + (f"; the nearest is {near[0]}" if near else "")
    return None
