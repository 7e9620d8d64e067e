"""What a claw says that it used, beside what was counted: a warning where the two are apart."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from adapters.base import TokenUsage
from clawbench.usage import differing
from gateway.models import TokenCounts
from records.run import RunDirectory
from reports.summary import summary_lines

numbers = st.one_of(st.none(), st.integers(0, 10**9))


@given(numbers, numbers)
def test_two_counts_are_apart_by_more_than_two_percent(told: int | None, counted: int | None) -> None:
    found = differing(TokenUsage(output=told), TokenCounts(output=counted))
    if told is None or counted is None:
        assert found == {}
    else:
        assert (found == {"output": (told, counted)}) == (100 * abs(told - counted) > 2 * counted)


def test_the_edges() -> None:
    counted = TokenCounts(input=100, cache_read=0, output=50)
    assert differing(None, counted) == {}
    assert differing(TokenUsage(102, 0, 0, 51), counted) == {}
    assert differing(TokenUsage(103, 1, None, 48), counted) == {
        "input": (103, 100),
        "cache_read": (1, 0),
        "output": (48, 50),
    }


def finished(run: RunDirectory, instance_id: str, differs: dict[str, tuple[int, int]]) -> None:
    case = run.case("claw", instance_id)
    case.path.mkdir(parents=True)
    facts = {"outcome": "resolved", "seconds": {}, "tokens": {}, "usage_differs": differs}
    case.finish({**facts, "claw": "claw", "instance_id": instance_id, "ending": "finished", "detail": ""})


def test_the_report_warns_of_it(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    finished(run, "one", {})
    assert not any("warning" in line for line in summary_lines(run))
    finished(run, "two", {"cache_read": (1200, 1000)})
    (warning,) = [line for line in summary_lines(run) if "warning" in line]
    assert "1 of 2 cases" in warning
    assert "two: cache read 1,200 for 1,000" in warning
