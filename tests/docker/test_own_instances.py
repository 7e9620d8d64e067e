"""docs/own-instances.md from an empty folder to verdicts, as it is written; and datasets that can't be used."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from support.bench_run import ROOT, BenchRun
from support.user_commands import documented, run
from support.workspace_fixtures import remove_tags

from adapters.registry import installed
from adapters.runtimes import default_home
from demo.task_images import ensure_image

PAGE = ROOT / "docs" / "own-instances.md"
HERE = "FROM clawbench/demo-python"
"""What takes the place of the page's base image, which is not on every machine."""


def written_files(folder: Path) -> None:
    """The files that the page shows, as it shows them."""
    text = PAGE.read_text()
    for name, content in re.findall(r"The file `([\w.]+)`.*?```\w+\n(.*?)```", text, re.DOTALL):
        (folder / name).write_text(re.sub(r"\AFROM .*\nRUN .*\n", f"{HERE}\n", content))


@pytest.fixture
def image() -> Iterator[None]:
    client = docker.from_env(timeout=600)
    try:
        ensure_image(client, "demo__ledgerlite-204", cache=default_home(), say=print)  # and its base image with it
        yield
        for instance in ("myorg__shop-1", "myorg__shop-2"):
            remove_tags(client, instance)
        client.images.remove("myorg/shop:1", force=True)
    finally:
        client.close()


@pytest.mark.docker
@pytest.mark.usefixtures("image")
@pytest.mark.skipif(not installed("nanobot"), reason="nanobot is not installed: clawbench install nanobot")
def test_the_page_leads_to_verdicts(tmp_path: Path) -> None:
    written_files(tmp_path)
    build, head, rows, check, both = documented(PAGE)

    def here(*words: str) -> str:
        return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.strip()

    here(*build)
    here(*(here(*head) if word == "BASE_COMMIT" else word for word in rows))
    options = [f"--artifacts={tmp_path / 'runs'}"]

    def in_folder(words: list[str]) -> list[str]:
        return [word.replace("rows.jsonl", str(tmp_path / "rows.jsonl")) for word in words] + options

    checked = run(in_folder(check))
    assert checked.returncode == 0, checked.stdout
    assert "2 of 2 environments are sound" in checked.stdout
    done = run(in_folder(both))
    ran = BenchRun(tmp_path / "runs" / "own", done.returncode, done.stdout)
    assert ran.outcomes() == {"myorg__shop-1": "resolved", "myorg__shop-2": "resolved"}, done.stdout
    assert {case["language_group"] for case in ran.cases().values()} == {"python"}
    manifest = json.loads((ran.folder / "manifest.json").read_text())
    assert manifest["rows"]["dataset"]["source"] == str(tmp_path / "rows.jsonl")
    assert manifest["settings"]["dataset_sha256"]
    selected = run(
        in_folder(["pytest", "--collect-only", "-q", "--dataset=rows.jsonl", "-m", "dataset and python"])
    )
    assert "nanobot-myorg__shop-1" in selected.stdout
    assert "demo__" not in selected.stdout
