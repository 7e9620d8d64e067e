"""What a command selects, computed from the names and markers of all cases; nothing is collected here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from adapters.registry import CLAWS
from clawbench.pytest_plugin import selection
from clawbench.pytest_plugin.selection import Selection
from evaluation.lists import ListedInstance, listed_instances

ONE = "tests_bench/test_resolved.py::test_resolved[zeroclaw-demo__cronspan-118]"


OPTIONS: dict[str, Any] = {
    **{"keyword": "", "markexpr": "", "claw": [], "set": []},
    **{"instances": None, "gold": False, "samples": 1, "predictions": [], "dataset": None},
}


def chosen(keyword: str = "", markers: str = "", *args: str, **more: Any) -> Selection:
    option = {**OPTIONS, "keyword": keyword, "markexpr": markers}
    config: Any = SimpleNamespace(option=SimpleNamespace(**option | more), args=args, stash=pytest.Stash())
    selection.select(config)
    return selection.selection(config)


def left_by(keyword: str, markers: str) -> list[ListedInstance]:
    """What pytest's own `-k` and `-m` leave, for expressions of one word with or without `not`."""

    def holds(expression: str, names: set[str]) -> bool:
        word = expression.removeprefix("not ")
        return not expression or any(word in name for name in names) != expression.startswith("not ")

    return [
        one
        for one in listed_instances()
        if holds(keyword, {f"test_resolved[nanobot-{one.instance_id}]", *one.markers})
        and holds(markers, {*one.markers})
    ]


@pytest.mark.parametrize(
    ("keyword", "named"),
    [
        ("", ()),
        ("nanobot", ("nanobot",)),
        ("nanobot and cronspan", ("nanobot",)),
        ("zeroclaw or nanobot", ("nanobot", "zeroclaw")),
        ("(hermes or generic) and not rust", ("hermes", "generic")),
        ("claw", ("openclaw", "zeroclaw")),
        ("NanoBot", ("nanobot",)),
        ("not openclaw", ()),
        ("cronspan", ()),
        ("test_resolved", ()),
        ("not (nanobot and cronspan)", ()),
    ],
)
def test_a_claw_is_named_by_an_expression_that_would_not_select_another(
    keyword: str, named: tuple[str, ...]
) -> None:
    assert chosen(keyword).named_claws == named


def test_a_sample_is_no_instance() -> None:
    everything = list(listed_instances())
    for keyword in ("s2", "nanobot and s2"):
        second = chosen(keyword, samples=2)
        assert {one.set_name for one in everything if second.wanted(everything)(one)} == {"demo"}
    assert chosen("nanobot and s2", samples=2).named_claws == ("nanobot",)


def test_claws_are_named_by_option_and_by_test_id() -> None:
    assert chosen(claw=["hermes", "openclaw"]).claws == ["openclaw", "hermes"], "in the order of all claws"
    assert chosen("", "", ONE).claws == ["zeroclaw"]
    assert chosen("", "", "tests_bench").named_claws == ()


def test_without_a_named_claw_the_installed_ones_are_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "installed", lambda name: name == "hermes")
    assert chosen("cronspan").claws == ["hermes"]
    assert chosen("not nanobot").claws == ["hermes"]
    assert chosen("nanobot").claws == ["nanobot"]


@pytest.mark.parametrize(
    ("keyword", "markers", "sets"),
    [
        ("", "", {"demo"}),
        ("nanobot", "", {"demo"}),
        ("cronspan", "", {"demo"}),
        ("", "demo", {"demo"}),
        ("", "python", {"verified_mini"}),
        ("", "rust", {"multilingual"}),
        ("", "lite", {"verified_mini", "multilingual"}),
        ("", "full", {"verified_mini", "multilingual"}),
        ("django", "", {"verified_mini"}),
        ("", "not python", {"demo"}),
        ("not django", "", {"demo"}),
        ("", "not demo", set()),
    ],
)
def test_real_instances_are_meant_only_if_they_are_named(keyword: str, markers: str, sets: set[str]) -> None:
    left = left_by(keyword, markers)
    is_wanted = chosen(keyword, markers).wanted(left)
    assert {one.set_name for one in left if is_wanted(one)} == sets


def test_the_embedded_set_is_added_to_real_ones_only_by_name() -> None:
    everything = list(listed_instances())
    both = chosen("", "demo or lite").wanted(everything)
    assert {one.set_name for one in everything if both(one)} == {"demo", "verified_mini", "multilingual"}
    real = chosen("", "lite or rust").wanted(everything)
    assert not any(one.embedded for one in everything if real(one))


def test_sets_are_named_by_option() -> None:
    everything = list(listed_instances())
    lite = chosen(set=["lite"]).wanted(everything)
    assert {one.instance_id for one in everything if lite(one)} == {
        one.instance_id for one in everything if one.lite
    }
    both = chosen(set=["demo", "verified_mini"]).wanted(everything)
    assert {one.set_name for one in everything if both(one)} == {"demo", "verified_mini"}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"claw": ["nanobto"]}, "--claw nanobto: .* the nearest is nanobot"),
        ({"set": ["light"]}, "--set light: .* demo, full, lite, verified_mini, multilingual"),
        ({"keyword": "nanobot and ("}, "Wrong expression passed to '-k': nanobot and \\("),
        ({"markexpr": "lite or"}, "Wrong expression passed to '-m': lite or"),
        ({"instances": "/no/such/file"}, "--instances /no/such/file: "),
    ],
)
def test_what_does_not_exist_is_refused(more: dict[str, Any], message: str) -> None:
    option = OPTIONS | more
    config: Any = SimpleNamespace(option=SimpleNamespace(**option), args=[], stash=pytest.Stash())
    with pytest.raises(pytest.UsageError, match=message):
        selection.select(config)


def test_all_claws_have_names_that_no_other_contains() -> None:
    assert not [(one, other) for one in CLAWS for other in CLAWS if one != other and one in other]
