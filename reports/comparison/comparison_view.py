"""A comparison as text, Markdown, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from reports.comparison.comparison import Comparison, Pair, Quantity, p_value, points, span
from reports.comparison.grid import span_of
from reports.comparison.manifest_differences import Difference, Role

_MOST_NAMES = 20
_LONGEST_FACT = 60
_TITLES = {"dollars": "US dollars", "tokens": "tokens", "turns": "turns", "seconds": "seconds of the agent"}


@dataclass(frozen=True)
class Block:
    """A heading with text, or with a table."""

    title: str
    lines: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


def as_json(comparison: Comparison) -> str:
    """The whole comparison, with all ids."""
    facts = TypeAdapter(Comparison).dump_python(comparison, mode="json")
    for made, pair in zip(facts["pairs"], comparison.pairs, strict=True):
        made["conclusion"] = pair.conclusion
    return json.dumps(facts, indent=2)


def as_csv(comparison: Comparison) -> str:
    """One row for each pair."""
    rows = [_csv_row(pair) for pair in comparison.pairs]
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def as_text(comparison: Comparison, width: int) -> str:
    """Tables for a terminal.

    Args:
        comparison: what to show.
        width: in characters.
    """
    stream = io.StringIO()
    console = Console(file=stream, width=width, color_system=None)
    for block in _blocks(comparison):
        if not block.rows:
            console.print(block.title, *block.lines, sep="\n", markup=False)
            console.print()
            continue
        table = Table(title=block.title, title_justify="left", box=None, pad_edge=False, padding=(0, 1, 0, 0))
        for number, heading in enumerate(block.headings):
            table.add_column(
                heading, justify="right" if number and _is_figure(block, number) else "left", overflow="fold"
            )
        for row in block.rows:
            table.add_row(*map(escape, row))
        console.print(table)
        console.print()
    return "\n".join(line.rstrip() for line in stream.getvalue().rstrip().splitlines()) + "\n"


def as_markdown(comparison: Comparison) -> str:
    """Tables for a page, such as the summary of a CI step."""
    parts = []
    for block in _blocks(comparison):
        lines = [f"### {_cell(block.title)}", "", *(_cell(line) + "  " for line in block.lines)]
        if block.rows:
            ruler = [
                ":--" if not number or not _is_figure(block, number) else "--:"
                for number in range(len(block.headings))
            ]
            lines += [_markdown_row(block.headings), _markdown_row(ruler), *map(_markdown_row, block.rows)]
        parts.append("\n".join(lines).rstrip())
    return "\n\n".join(parts) + "\n"


def difference_line(one: Difference) -> str:
    """A difference of two manifests in one line."""
    return f"{one.factor}: {one.path} is {_fact(one.first)} and {_fact(one.second)}{_some(one)}"


def _blocks(comparison: Comparison) -> Iterator[Block]:
    yield Block(
        "Contenders",
        headings=("name", "run", "claw", "Pass@1", "instances", "cases", "without verdict"),
        rows=tuple(
            (
                one.name,
                f"{one.where} (made elsewhere)" if one.is_made_elsewhere else one.where,
                one.claw,
                "-" if one.pass_at_1 is None else f"{100 * one.pass_at_1:.1f}%",
                *map(str, (one.instances, one.cases, one.without_verdict)),
            )
            for one in comparison.contenders
        ),
    )
    for pair in comparison.pairs:
        yield from _blocks_of(pair)
    if comparison.spread is not None:
        parts = (comparison.spread.model, comparison.spread.claw, comparison.spread.rest)
        yield Block("Spread", (comparison.spread.conclusion,))
        yield Block(
            "Standard deviation of Pass@1, in points",
            headings=("due to the", "deviation", "95% interval", "largest difference"),
            rows=tuple(
                (
                    one.name,
                    f"{100 * one.deviation:.1f}",
                    span_of(one),
                    f"{100 * one.difference:.1f}",
                )
                for one in parts
            ),
        )
    published = [(row, one) for row in comparison.contenders for one in row.published]
    if published:
        yield Block(
            "PUBLISHED results of the same claw and model, on the full 350 instances; not measured here",
            headings=("name", "paper's version", "published", "here", "points", "95% interval", "instances here"),
            rows=tuple(
                (
                    row.name,
                    str(one.published.version),
                    f"{100 * one.published.pass_at_1:.1f}%",
                    f"{100 * one.measured:.1f}%",
                    points(one.difference),
                    f"{points(one.low)} to {points(one.high)}",
                    str(one.instances),
                )
                for row, one in published
            ),
        )


def _blocks_of(pair: Pair) -> Iterator[Block]:
    mark = " (CONFOUNDED)" if pair.is_confounded and pair.is_shown else ""
    name = f"{pair.second} against {pair.first}{mark}"
    left_out = [
        f"Not compared, because only {who} has them: {_names(names)}"
        for who, names in ((pair.first, pair.only_first), (pair.second, pair.only_second))
        if names
    ]
    studied = ", ".join(pair.comparability.studied)
    under_study = f"Under study: {studied}." if studied else "The manifests have no difference under study."
    yield Block(name, (pair.conclusion, under_study, *left_out, *map(str, _instances(pair))))
    differences = [
        one for one in pair.comparability.differences if one.role is not Role.HARMLESS or not pair.is_shown
    ]
    if differences:
        yield Block(
            f"Manifests{mark}",
            headings=("difference", "factor", "fact", pair.first, pair.second),
            rows=tuple(
                (one.role.value, one.factor, one.path + _some(one), _fact(one.first), _fact(one.second))
                for one in differences
            ),
        )
    if pair.paired is None:
        return
    paired = pair.paired
    yield Block(
        f"Pass@1{mark}",
        headings=(
            "instances",
            pair.first,
            pair.second,
            "points",
            "95% interval",
            "won",
            "lost",
            "both",
            "neither",
            "p",
            "p, Holm",
        ),
        rows=(
            (
                str(paired.instances),
                f"{100 * paired.first:.1f}%",
                f"{100 * paired.second:.1f}%",
                points(paired.difference.mean),
                span(paired.difference),
                *(str(len(names)) for names in (paired.won, paired.lost, paired.both, paired.neither)),
                p_value(paired.p_value),
                p_value(pair.p_corrected),
            ),
        ),
    )
    if pair.quantities:
        yield Block(
            f"Mean per instance{mark}",
            headings=("quantity", pair.first, pair.second, "difference", "95% interval", "instances", "unknown"),
            rows=tuple(map(_quantity_row, pair.quantities)),
        )
    for kind in dict.fromkeys(group.kind for group in pair.groups):
        yield Block(
            f"By {kind}{mark}; p is not corrected",
            headings=(kind, "instances", pair.first, pair.second, "points", "won", "lost", "p"),
            rows=tuple(
                (
                    group.name,
                    str(group.paired.instances),
                    f"{100 * group.paired.first:.1f}%",
                    f"{100 * group.paired.second:.1f}%",
                    points(group.paired.difference.mean),
                    str(len(group.paired.won)),
                    str(len(group.paired.lost)),
                    p_value(group.paired.p_value),
                )
                for group in pair.groups
                if group.kind == kind
            ),
        )


def _instances(pair: Pair) -> Iterator[str]:
    paired = pair.paired
    for title, names in (("won", paired.won), ("lost", paired.lost)) if paired is not None else ():
        if names:
            yield f"{title} by {pair.second}: {_names(names)}"


def _quantity_row(one: Quantity) -> tuple[str, ...]:
    low, high = one.difference.low, one.difference.high
    between = (
        "unknown" if low is None or high is None else f"{_figure(low, one.name)} to {_figure(high, one.name)}"
    )
    figures = (one.first, one.second, one.difference.mean)
    return (
        _TITLES[one.name],
        *(_figure(x, one.name) for x in figures),
        between,
        str(one.instances),
        str(one.unknown),
    )


def _figure(value: float, name: str) -> str:
    return f"{value:,.4f}" if name == "dollars" else f"{value:,.1f}" if name != "tokens" else f"{value:,.0f}"


def _csv_row(pair: Pair) -> dict[str, Any]:
    row: dict[str, Any] = {
        "first": pair.first,
        "second": pair.second,
        "studied": " ".join(pair.comparability.studied),
        "confounding": " ".join(pair.comparability.confounding),
    }
    paired = pair.paired
    columns = ("instances", "first_pass_at_1", "second_pass_at_1", "difference", "low", "high", "p", "p_holm")
    figures = (
        (
            paired.instances,
            paired.first,
            paired.second,
            *_ends(paired.difference),
            paired.p_value,
            pair.p_corrected,
        )
        if paired is not None
        else ("",) * len(columns)
    )
    row.update(zip(columns, figures, strict=True))
    for name in ("won", "lost", "both", "neither"):
        row[name] = len(getattr(paired, name)) if paired is not None else ""
    by_name = {one.name: one for one in pair.quantities}
    for name in _TITLES:
        one = by_name.get(name)
        found = (one.first, one.second, *_ends(one.difference)) if one is not None else ("",) * 5
        row.update(
            zip(
                (f"{name}_{part}" for part in ("first", "second", "difference", "low", "high")), found, strict=True
            )
        )
    return {
        **row,
        "open_cases": pair.bounds.open if pair.bounds is not None else "",
        "conclusion": pair.conclusion,
    }


def _ends(interval: Any) -> tuple[float, float | None, float | None]:
    return interval.mean, interval.low, interval.high


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more (--format json has all)" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _some(one: Difference) -> str:
    return f" (in {one.instances} instances)" if one.instances is not None else ""


def _fact(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _LONGEST_FACT else text[: _LONGEST_FACT - 1] + "…"


def _is_figure(block: Block, number: int) -> bool:
    """Whether a column has figures, which are aligned to the right."""
    return all(not row[number] or row[number][0] in "0123456789+-<" for row in block.rows)


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    """Text that Markdown shows as it is; nothing of a claw becomes markup."""
    for character in "\\`*_[]<>|#":
        text = text.replace(character, "\\" + character)
    return text.replace("\n", " ")
