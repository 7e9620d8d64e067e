"""Collection: what becomes of edits on the way to the judge, for generated files, edits and damages."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.bench_run import ROOT
from support.user_commands import documented, run
from swebench.harness.run_evaluation import GIT_APPLY_CMDS

from collection.checkout import Checkout
from collection.results import Collected, by_arm, markdown, mixes
from evaluation.collection import FUZZY, STRICT, Arm, Change, Kind, kind_of
from evaluation.message_patch import patch_in
from gateway.behaviours.message_damage import CONDITIONS, SILENT
from tests_bench.collection_study.corpus import study_tasks

START = {"pkg/a.py": b"".join(b"line %d\n" % number for number in range(60)), "b.txt": b"one\ntwo\n"}


def test_the_fuzzy_arm_is_the_official_harness() -> None:
    assert [" ".join(command) for command in FUZZY] == GIT_APPLY_CMDS


@st.composite
def edits(draw: st.DrawFn) -> dict[str, bytes]:
    """The files after an agent changed at least two far places of one of them, and perhaps others."""
    lines = START["pkg/a.py"].split(b"\n")
    places = draw(st.lists(st.sampled_from([5, 20, 35, 50]), min_size=2, unique=True))
    words = st.binary(max_size=8).filter(lambda word: b"\0" not in word)
    for place in places:
        lines[place] = draw(words) + b"!"
    more = draw(st.dictionaries(st.sampled_from(["new.py", "b.txt", "pkg/c d.txt"]), words, max_size=2))
    return {"pkg/a.py": b"\n".join(lines), **more}


@settings(max_examples=15, deadline=None)
@given(edits())
def test_an_applied_export_is_the_tree(edited: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as name:
        checkout = Checkout(Path(name, "x"), START)
        wanted = checkout.edited(edited)
        for commands in (STRICT, FUZZY):
            applied = checkout.apply(wanted.diff, commands)
            assert applied.change == wanted
            assert kind_of(wanted, applied.change, is_applied=applied.is_applied) is Kind.EXACT


@st.composite
def plain_edits(draw: st.DrawFn) -> dict[str, bytes]:
    """Edits of text that survives being typed."""
    lines = START["pkg/a.py"].decode().split("\n")
    for place in draw(st.lists(st.sampled_from([5, 20, 35, 50]), min_size=2, unique=True)):
        word = draw(st.text("abc (){}'\"é", min_size=1, max_size=12))
        lines[place] = "    " + word + "!"
    return {"pkg/a.py": "\n".join(lines).encode()}


@settings(max_examples=10, deadline=None)
@given(plain_edits())
def test_each_damage_is_classed_as_what_it_is(edited: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as name:
        checkout = Checkout(Path(name, "x"), START)
        wanted = checkout.edited(edited)

        def kind(condition: str) -> Kind:
            patch = patch_in(CONDITIONS[condition](wanted.diff.decode())).encode()
            applied = checkout.apply(patch, STRICT)
            return kind_of(wanted, applied.change, is_applied=applied.is_applied)

        assert {kind(name) for name in ("intact", "drifted header", "fence with prose")} == {Kind.EXACT}
        assert {kind(name) for name in ("stale context", "wrong path root", "CRLF")} == {Kind.REJECTED}
        assert {kind(name) for name in SILENT} == {Kind.UNDER_EDIT}


def test_other_trees_are_told_apart(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path / "x", START)
    lines = START["pkg/a.py"].split(b"\n")

    def with_lines(**changed: bytes) -> dict[str, bytes]:
        found = list(lines)
        for place, content in changed.items():
            found[int(place[1:])] = content
        return {"pkg/a.py": b"\n".join(found)}

    wanted = checkout.edited(with_lines(n5=b"x", n40=b"y"))

    def kind(got: Change, *, is_applied: bool = True) -> Kind:
        return kind_of(wanted, got, is_applied=is_applied)

    assert kind(wanted) is Kind.EXACT
    assert kind(checkout.edited({})) is Kind.UNDER_EDIT
    assert kind(checkout.edited({}), is_applied=False) is Kind.REJECTED
    assert kind(checkout.edited(with_lines(n5=b"x"))) is Kind.UNDER_EDIT
    assert kind(checkout.edited(with_lines(n5=b"x")), is_applied=False) is Kind.HALF_APPLIED
    assert kind(checkout.edited(with_lines(n5=b"x", n40=b"y", n20=b"z"))) is Kind.OVER_EDIT
    assert kind(checkout.edited(with_lines(n5=b"x", n40=b"\ty"))) is Kind.OTHER_TREE
    assert kind(checkout.edited({**with_lines(n5=b"x", n40=b"y"), "b.txt": b"x"})) is Kind.WRONG_FILE
    assert kind(checkout.edited({"new": b"\0"})) is Kind.WRONG_FILE


def test_a_repositorys_own_files_named_like_leftovers_stay(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path / "x", {**START, "b.txt.orig": b"ours\n"})
    wanted = checkout.edited({"b.txt": b"one\n2\n"})
    assert checkout.apply(wanted.diff, FUZZY).change == wanted


def test_the_start_tree_is_back_after_each_call(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path / "x", START)
    wanted = checkout.edited({"new/file": b"1\n", "b.txt": b"one\n2\n"})
    for patch in (wanted.diff, b"", b"garbage", wanted.diff.replace(b"-two", b"-tow")):
        checkout.apply(patch, FUZZY)
        found = {str(path.relative_to(checkout.folder)) for path in checkout.folder.rglob("*") if path.is_file()}
        assert found == set(START)
        assert all((checkout.folder / name).read_bytes() == content for name, content in START.items())


def test_there_are_thirty_tasks_and_six_wrong_intents() -> None:
    tasks = study_tasks()
    assert (len(tasks), sum(task.is_right for task in tasks)) == (30, 24)
    assert len({task.name for task in tasks}) == 30
    assert all(task.start.keys() == task.edited.keys() for task in tasks)


def row(arm: Arm, condition: str, kind: Kind, *, resolved: bool, corruption: str = "") -> Collected:
    return Collected(
        case="t", condition=condition, arm=arm, kind=kind, resolved=resolved, seconds=0.002, corruption=corruption
    )


def test_rates_and_mixes_by_hand() -> None:
    rows = [
        row(Arm.STRICT, "intact", Kind.EXACT, resolved=True),
        row(Arm.STRICT, "a", Kind.REJECTED, resolved=False),
        row(Arm.STRICT, "b", Kind.UNDER_EDIT, resolved=False, corruption="-`````\n"),
        row(Arm.STRICT, "c", Kind.HALF_APPLIED, resolved=False),
        row(Arm.STRICT, "d", Kind.OTHER_TREE, resolved=True, corruption="-x\n"),
    ]
    (strict,) = by_arm(rows)
    assert (strict.resolved, strict.rejected, strict.half_applied) == (0.4, 0.4, 0.2)
    assert (strict.applied_but_wrong, strict.under_edit, strict.ms) == (0.4, 0.2, 2)
    assert [mix.resolved[Arm.STRICT] for mix in mixes(rows, "intact", 2)] == [1, 0.625, 0.25]
    assert "``````diff\n-`````\n``````" in markdown(rows, "intact")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The command of docs/collection-study.md."""
    folder = tmp_path_factory.mktemp("study")
    command, *_ = documented(ROOT / "docs" / "collection-study.md")
    done = run([*command, f"--artifacts={folder}"])
    assert done.returncode == 0, done.stdout
    return done.stdout, folder / "collection-study"


def test_the_study_shows_what_forgiveness_costs(study: tuple[str, Path]) -> None:
    output, folder = study
    found = json.loads((folder / "collection-study.json").read_text())
    workspace, strict, fuzzy = found["arms"]
    assert (workspace["resolved"], workspace["rejected"], workspace["applied_but_wrong"]) == (0.8, 0, 0)
    assert strict["resolved"] < fuzzy["resolved"] < workspace["resolved"]
    assert fuzzy["rejected"] < strict["rejected"]
    assert fuzzy["applied_but_wrong"] > strict["applied_but_wrong"]
    assert {len(mix["resolved"]) for mix in found["mixes"]} == {3}
    assert len({round(mix["resolved"]["workspace"], 6) for mix in found["mixes"]}) == 1
    silent = [one for one in found["rows"] if one["corruption"]]
    assert (folder / "collection-study.md").read_text().count("```diff") == len(silent)
    assert f"{len(silent)} of 810 patches were applied without an error" in output
    assert "Resolved, by share of defective messages" in output
    assert not [path for path in folder.parent.iterdir() if path != folder], "no run was begun"
