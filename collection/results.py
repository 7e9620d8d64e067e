"""The results of collecting cases in several arms: tables by arm and condition, and what other mixes would give."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Literal

from pydantic import BaseModel, ConfigDict

from evaluation.collection import Arm, Kind


class Collected(BaseModel):
    """One case, collected in one arm."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    case: str
    condition: str
    """What was wrong with the message; "" if it is not known."""
    arm: Arm
    kind: Kind
    resolved: bool
    seconds: float
    """For collecting and applying the patch."""
    corruption: str = ""
    """If the files are not the agent's and nothing said so: git's diff from the agent's files to these."""


class ArmResult(BaseModel):
    """The shares of an arm's cases, from 0 to 1."""

    arm: Arm
    condition: str
    """"" for all of them."""
    cases: int
    resolved: float
    rejected: float
    """Refused, with or without a part left in the files."""
    half_applied: float
    """The part of `rejected` that left something in the files."""
    applied_but_wrong: float
    """Applied without an error, and the files are not the agent's."""
    under_edit: float
    """The part of `applied_but_wrong` in which a part of the agent's changes is missing, and nothing else is wrong."""
    ms: float
    """Milliseconds for each patch."""


class Mix(BaseModel):
    """What an arm would resolve if a share of the messages were defective."""

    defective: float
    resolved: dict[Arm, float]


class StudyResults(BaseModel):
    """Everything that is known about how cases were collected."""

    format: Literal[1] = 1
    arms: list[ArmResult]
    conditions: list[ArmResult]
    mixes: list[Mix]
    rows: list[Collected]


def by_arm(rows: Sequence[Collected]) -> list[ArmResult]:
    """Each arm over all conditions."""
    return [_result(arm, "", [row for row in rows if row.arm is arm]) for arm in _arms(rows)]


def by_condition(rows: Sequence[Collected]) -> list[ArmResult]:
    """Each arm in each condition."""
    conditions = dict.fromkeys(row.condition for row in rows)
    return [
        _result(arm, condition, [row for row in rows if row.arm is arm and row.condition == condition])
        for condition in conditions
        for arm in _arms(rows)
    ]


def mixes(rows: Sequence[Collected], intact: str, steps: int = 4) -> list[Mix]:
    """Recombine the rates of intact and of defective messages; each defect has the same weight.

    Args:
        rows: the results.
        intact: the condition in which nothing is wrong.
        steps: how many steps there are from none defective to all.
    """
    arms = _arms(rows)
    clean = {
        arm: fmean(row.resolved for row in rows if row.arm is arm and row.condition == intact) for arm in arms
    }
    bad = {arm: fmean(row.resolved for row in rows if row.arm is arm and row.condition != intact) for arm in arms}
    shares = [step / steps for step in range(steps + 1)]
    return [
        Mix(defective=share, resolved={arm: (1 - share) * clean[arm] + share * bad[arm] for arm in arms})
        for share in shares
    ]


def _arms(rows: Sequence[Collected]) -> list[Arm]:
    known = {row.arm for row in rows}
    return [arm for arm in Arm if arm in known]


def _result(arm: Arm, condition: str, rows: Sequence[Collected]) -> ArmResult:
    counts = Counter(row.kind for row in rows)

    def share(*kinds: Kind) -> float:
        return sum(counts[kind] for kind in kinds) / len(rows)

    return ArmResult(
        arm=arm,
        condition=condition,
        cases=len(rows),
        resolved=fmean(row.resolved for row in rows),
        rejected=share(Kind.REJECTED, Kind.HALF_APPLIED),
        half_applied=share(Kind.HALF_APPLIED),
        applied_but_wrong=share(*(kind for kind in Kind if kind.is_silent)),
        under_edit=share(Kind.UNDER_EDIT),
        ms=1000 * fmean(row.seconds for row in rows),
    )


_HEADINGS = ("arm", "cases", "resolved", "rejected", "applied but wrong", "under-edit", "half-applied", "ms")


def tables(rows: Sequence[Collected], intact: str = "") -> list[tuple[str, list[str], list[list[str]]]]:
    """The tables: title, headings, and rows of cells.

    Args:
        rows: the results.
        intact: the condition in which nothing is wrong; "" if conditions are unknown, so that only arms are shown.
    """
    found = [("Collection, by arm", list(_HEADINGS), [_cells(one) for one in by_arm(rows)])]
    if intact:
        detail = [[one.condition, *_cells(one)] for one in by_condition(rows)]
        found.append(("Collection, by condition of the message", ["condition", *_HEADINGS], detail))
        mixed = mixes(rows, intact)
        cells = [[_percent(mix.defective), *map(_percent, mix.resolved.values())] for mix in mixed]
        found.append(("Resolved, by share of defective messages", ["defective", *mixed[0].resolved], cells))
    return found


def _cells(one: ArmResult) -> list[str]:
    shares = (one.resolved, one.rejected, one.applied_but_wrong, one.under_edit, one.half_applied)
    return [str(one.arm), str(one.cases), *map(_percent, shares), f"{one.ms:.1f}"]


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def markdown(rows: Sequence[Collected], intact: str = "") -> str:
    """All tables, and every silent corruption as a diff."""
    return "\n".join(_markdown(rows, intact)) + "\n"


def _markdown(rows: Sequence[Collected], intact: str) -> Iterator[str]:
    for title, headings, cells in tables(rows, intact):
        yield f"## {title}\n"
        yield f"| {' | '.join(headings)} |"
        yield "| --- " * len(headings) + "|"
        yield from (f"| {' | '.join(row)} |" for row in cells)
        yield ""
    silent = [row for row in rows if row.corruption]
    yield f"## Silent corruption: {len(silent)} of {len(rows)}\n"
    yield "Each diff leads from the files that the agent left to those that were judged.\n"
    for row in silent:
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", row.corruption)), default=0))
        yield f"### {row.case}: {row.arm}, {row.condition or 'as typed'}, {row.kind}\n"
        yield f"{fence}diff\n{row.corruption.rstrip()}\n{fence}\n"


def as_json(rows: Sequence[Collected], intact: str = "") -> bytes:
    """All results with the tables' numbers, as a JSON document."""
    whole = StudyResults(
        arms=by_arm(rows),
        conditions=by_condition(rows) if intact else [],
        mixes=mixes(rows, intact) if intact else [],
        rows=list(rows),
    )
    return whole.model_dump_json(indent=2).encode() + b"\n"
