"""Predictions of other tools, in the formats in which they write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.user_commands import run

from clawbench.run.made_elsewhere import contenders
from evaluation.predictions_file import PredictionsError, read_predictions

KNOWN = ("acme__tool-1", "acme__tool-2", "Acme__Other-3")
PATCH = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\r\n+b\u2028\r\n"
ROWS: list[dict[str, Any]] = [
    {"instance_id": "acme__tool-1", "model_patch": PATCH, "model_name_or_path": "acme", "cost": 1},
    {"instance_id": "acme__tool-2", "model_patch": None, "model_name_or_path": "acme"},
    {"instance_id": "Acme__Other-3", "model_patch": "", "model_name_or_path": "acme", "exit": {"a": 1}},
]
WANTED = {"acme__tool-1": PATCH, "acme__tool-2": "", "Acme__Other-3": ""}
LINES = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS)
BY_ID = {row["instance_id"]: row for row in ROWS}
FORMATS = {
    "JSON lines": LINES,
    "JSON lines without a last line end": LINES.rstrip(),
    "empty lines between": LINES.replace("\n", "\n\n"),
    "CRLF": LINES.replace("\n", "\r\n"),
    "BOM": "\ufeff" + LINES,
    "list": json.dumps(ROWS, indent=2),
    "by id": json.dumps(BY_ID, indent=2),
    "by id, without the id again": json.dumps(
        {name: {key: row[key] for key in row if key != "instance_id"} for name, row in BY_ID.items()}
    ),
    "one line": json.dumps(ROWS[0]),
}


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_is_read(name: str, tmp_path: Path) -> None:
    file = tmp_path / "all_preds.jsonl"
    file.write_bytes(FORMATS[name].encode())
    wanted = {"acme__tool-1": PATCH} if name == "one line" else WANTED
    for path in (file, tmp_path):  # a folder of the experiments repository has a file of this name
        found = read_predictions(path, KNOWN)
        assert (dict(found.patches), found.model_name) == (wanted, "acme")


def test_patches_alone_by_id_are_read(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(json.dumps({"acme__tool-1": PATCH, "acme__tool-2": None}))
    found = read_predictions(tmp_path / "p.json", KNOWN)
    assert (dict(found.patches), found.model_name) == ({"acme__tool-1": PATCH, "acme__tool-2": ""}, "")


def lines(*rows: object) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (lines(ROWS[0], ROWS[1], ROWS[0]), "line 3: acme__tool-1 is already in line 1"),
        (
            '{"acme__tool-1": {"model_patch": "a"}, "acme__tool-1": {"model_patch": "b"}}',
            r"entry 2 \(acme__tool-1\): acme__tool-1 is already in entry 1",
        ),
        (lines({**ROWS[0], "instance_id": "acme__other-3"}), "did you mean Acme__Other-3?"),
        (
            lines({**ROWS[0], "instance_id": "acme__tool-11"}),
            r"line 1: unknown instance acme__tool-11; did you mean",
        ),
        (lines({**ROWS[0], "instance_id": "qqq"}), "unknown instance qqq$"),
        (lines({"instance_id": "acme__tool-1", "patch": ""}), "no model_patch, only instance_id, patch"),
        (lines({"model_patch": "x"}, ROWS[0]), "line 1: it has no instance_id, only model_patch"),
        (lines({**ROWS[0], "model_patch": ["x"]}), "is a list, not text"),
        (lines({**ROWS[0], "model_patch": "\ud800"}), "half of a surrogate pair"),
        (
            lines(ROWS[0], {**ROWS[1], "model_name_or_path": "other"}),
            r"several models: acme \(line 1\), other \(line 2\)",
        ),
        (lines(ROWS[0]) + "{broken\n", "line 2: it is no JSON"),
        (lines(ROWS[0], 5), "a prediction must be an object, this is a int"),
        ("", "it has no prediction"),
        ("[]", "it has no prediction"),
        ("5", "expected JSON lines, a list, or an object by instance id"),
        (
            '{"acme__tool-1": {"instance_id": "acme__tool-2", "model_patch": ""}}',
            "its instance_id is 'acme__tool-2'",
        ),
        (lines({"model_patch": "x"}, {"model_patch": "y"}), "2 faults; nothing was started"),
    ],
)
def test_a_fault_is_refused_with_its_place(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text(text)
    with pytest.raises(PredictionsError, match=message):
        read_predictions(tmp_path / "p.jsonl", KNOWN)


def test_what_is_not_there_or_not_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PredictionsError, match=r"has no file of predictions: expected one of all_preds\.jsonl"):
        read_predictions(tmp_path, KNOWN)
    with pytest.raises(PredictionsError, match="can't be read"):
        read_predictions(tmp_path / "none.jsonl", KNOWN)
    (tmp_path / "p.jsonl").write_bytes(b"\xff\xfe{")
    with pytest.raises(PredictionsError, match="can't be read"):
        read_predictions(tmp_path / "p.jsonl", KNOWN)


@given(st.dictionaries(st.sampled_from(KNOWN), st.text(st.characters(exclude_categories=["Cs"])), min_size=1))
def test_a_patch_arrives_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, patches: dict[str, str]
) -> None:
    file = tmp_path_factory.mktemp("any") / "preds.json"
    file.write_text(json.dumps({name: {"model_patch": patch} for name, patch in patches.items()}))
    assert dict(read_predictions(file, KNOWN).patches) == patches
    rows = [{"instance_id": name, "model_patch": patch} for name, patch in patches.items()]
    file.write_bytes("\r\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode())
    assert dict(read_predictions(file, KNOWN).patches) == patches


def judge(*words: str) -> str:
    done = run(["clawbench", "judge", *words])
    assert done.returncode == 2, done.stdout
    return done.stdout


def test_what_cannot_be_judged_is_refused_in_one_sentence(tmp_path: Path) -> None:
    file, other = tmp_path / "preds.json", tmp_path / "other.json"
    row = {"instance_id": "demo__csvline-19", "model_patch": PATCH, "model_name_or_path": "GPT-5 (mini)"}
    file.write_text(json.dumps([row]))
    other.write_text(json.dumps([row | {"instance_id": "demo__csvline-91"}]))
    place = f"--artifacts={tmp_path / 'runs'}"
    assert "name a file of predictions" in judge(place)
    assert "unknown instance demo__csvline-91; did you mean demo__csvline-19?" in judge(str(other), place)
    assert f"give names, as in before={file}" in judge(str(file), str(file), place)
    assert "the name 'nanobot' is taken" in judge(f"nanobot={file}", place)
    assert "--model and --samples: not with --predictions" in judge(
        str(file), "--model=openai/x", "--samples=2", place
    )
    assert "--claw nanobot: unknown; choose from gpt_5_mini" in judge(str(file), "--claw=nanobot", place)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("model", "name"),
    [("GPT-5 (mini)", "gpt_5_mini"), ("4o", "predictions_4o"), ("", "predictions"), ("x" * 99, "x" * 60)],
)
def test_contenders_are_named_after_their_model_or_by_the_user(model: str, name: str, tmp_path: Path) -> None:
    file = tmp_path / "a=b.json"
    file.write_text(json.dumps({"acme__tool-1": {"model_patch": PATCH, "model_name_or_path": model}}))
    assert list(contenders([str(file)], KNOWN)) == [name]
    assert list(contenders([f"mine={file}"], KNOWN)) == ["mine"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            '{"instance_id":"acme__tool-1","model_patch":"one","model_patch":"two"}',
            "line 1: it has model_patch more than",
        ),
        ('{"instance_id":"acme__tool-1","model_patch":{"a":1}}', "is an object, not text"),
        ("[1]", "p.json, element 1: a prediction must be an object"),
        ("[" * 100_000, "nested too deep"),
        ('{"instance_id":"acme__tool-1","model_patch":""}\n' + "[" * 100_000, "line 2: it is no JSON"),
    ],
)
def test_odd_objects_are_refused_with_their_places(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(PredictionsError, match=told):
        read_predictions(tmp_path / "p.json", KNOWN)
