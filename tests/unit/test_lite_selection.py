"""The selection of a small set: against exhaustive search, and by what it promises."""

from __future__ import annotations

import json
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.made_up import made_up_case, made_up_run
from support.user_commands import ROOT, documented
from typer.testing import CliRunner

from clawbench.cli import app
from evaluation.lists import LANGUAGE_GROUPS, listed_instances
from evaluation.outcomes import Outcome
from records.case_id import CaseId
from records.run_folder import RunDirectory
from reports.lite_selection import (
    Calibration,
    Objective,
    SelectionError,
    quality,
    quartiles_of,
    quotas,
    select,
    validate,
)

PAGE = ROOT / "docs" / "instances.md"


def generated(
    seed: int, columns: int = 5, size: int = 12, groups: tuple[str, ...] = ("go", "rust")
) -> Calibration:
    """Columns of different strength on instances of different difficulty."""
    random = np.random.default_rng(seed)
    instances = tuple(f"{group}__{number:02}" for group in groups for number in range(size))
    chance = random.uniform(0.2, 0.9, (columns, 1)) * random.uniform(0.2, 1.1, (1, len(instances)))
    return Calibration(
        columns=tuple(f"column{number}" for number in range(columns)),
        instances=instances,
        groups=tuple(group for group in groups for _ in range(size)),
        resolved=(random.uniform(size=chance.shape) < chance).astype(float),
        cost=random.lognormal(0, 0.5, chance.shape),
    )


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_the_search_finds_what_exhaustive_search_finds(seed: int) -> None:
    """12 instances in quartiles of 3: 3 * 3 * 3 * 3 selections of one each."""
    found = generated(seed, groups=("go",))
    objective = Objective(found.resolved, found.cost)
    quartiles = quartiles_of(found.resolved, found.instances)
    every = np.array([sum(parts, ()) for parts in product(*(combinations(part, 1) for part in quartiles))])
    chosen = [found.instances.index(name) for name in select(found, 4, restarts=30)]
    assert objective.of(np.array([chosen]))[0] == pytest.approx(objective.of(every).min())


@given(st.integers(0, 10_000), st.integers(4, 8))
@settings(max_examples=5, deadline=None)
def test_every_group_and_quartile_gives_its_quota(seed: int, per_group: int) -> None:
    found = generated(seed)
    chosen = set(select(found, per_group, restarts=3))
    assert select(found, per_group, restarts=3) == select(found, per_group, restarts=3)
    for group in ("go", "rust"):
        members = [at for at, name in enumerate(found.groups) if name == group]
        names = [found.instances[at] for at in members]
        parts = quartiles_of(found.resolved[:, members], names)
        assert [sum(names[at] in chosen for at in part) for part in parts] == quotas(per_group)


def test_quotas_are_the_papers() -> None:
    assert quotas(10) == [2, 3, 3, 2]
    assert [sum(quotas(number)) for number in range(1, 30)] == list(range(1, 30))


def test_the_objective_computed_by_hand() -> None:
    """Two columns with rates 3/4 and 1/4; the first two of four instances are selected."""
    resolved = np.array([[1.0, 1.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    cost = np.array([[1.0, 1.0, 2.0, 4.0], [np.nan] * 4])
    value = Objective(resolved, cost).of(np.array([[0, 1], [1, 2]]))
    # parity |1 - 3/4| + |1/2 - 1/4|; the lead of 1/2 is more than the margin; costs |log(1 / 2)| and |log(1.5 / 2)|
    assert value == pytest.approx([0.5 + np.log(2), 0.5 + np.log(4 / 3)])
    # the selection of instance 1 alone loses the lead: parity 1/4 + 3/4, and the whole margin is missing
    assert Objective(resolved, cost).of(np.array([[1]]))[0] == pytest.approx(1.0 + 0.05 + np.log(2))


def test_the_full_set_stands_for_itself() -> None:
    found = generated(3)
    whole = quality(found, found.instances)
    assert (whole.mean_error, whole.max_error, whole.cost_share) == (0, 0, pytest.approx(1))
    assert whole.ranks_kept == whole.ranks > 0
    for one in validate(found, found.instances):
        assert set(one.by_group.values()) == {0}


def test_a_selection_is_better_than_most_random_ones() -> None:
    found = generated(11, columns=8, size=24)
    random = np.random.default_rng(1)
    errors = [
        quality(found, list(random.choice(found.instances, 20, replace=False))).mean_error for _ in range(50)
    ]
    assert quality(found, select(found, 10, restarts=20)).mean_error < np.quantile(errors, 0.1)


def test_too_few_instances_are_refused() -> None:
    with pytest.raises(SelectionError, match="go has 12 instances with results in all runs; 13 are needed"):
        select(generated(1), 13)


def test_the_command_writes_a_list_that_runs_take(tmp_path: Path) -> None:
    """From two runs over eight instances of each language group, one of them without a verdict."""
    listed = [one for one in listed_instances() if not one.embedded]
    ids = [
        one.instance_id
        for group in LANGUAGE_GROUPS
        for one in [x for x in listed if x.language_group == group][:8]
    ]
    run = made_up_run(RunDirectory(tmp_path / "full"), ["nanobot", "openclaw"])
    for claw, every in (("nanobot", 2), ("openclaw", 3)):
        for number, name in enumerate(ids):
            outcome = Outcome.UNRESOLVED if number % every else Outcome.RESOLVED
            is_broken = claw == "nanobot" and number == 0
            made_up_case(run, CaseId(claw, name), Outcome.INFRASTRUCTURE if is_broken else outcome)
    target = tmp_path / "small.txt"
    more = ["--per-group", "5", "--restarts", "3", "--artifacts", str(tmp_path)]
    told = [words for words in documented(PAGE) if words[:2] == ["clawbench", "lite"]]
    (arguments, sweep) = ([*words[1:], *more] for words in told)
    arguments = [str(target) if word == "small.txt" else word for word in arguments]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "6 of each group" in CliRunner().invoke(app, sweep).output
    chosen = [line for line in target.read_text().splitlines() if not line.startswith("#")]
    assert len(chosen) == len(set(chosen)) == 40
    assert set(chosen) <= set(ids[1:])
    text = " ".join(done.output.split())
    assert f"left out, because a run has no verdict on it: {ids[0]}" in text
    assert "the published Lite set" in text
    assert "costs are unknown" in text
    assert json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)["selection"] == chosen
