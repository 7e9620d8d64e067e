"""Manifests: what they cover, and that no edit of one stays unseen."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.made_up import CLAW, made_up_manifest, made_up_run

from adapters.nanobot.nanobot_adapter import NanobotAdapter
from clawbench.run.manifest import adapter_digest
from records.models import ClawVersion
from records.run_folder import RunDirectory, RunError

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("recorded", "told"),
    [("1" * 64, "the run has '1111"), (None, "the run did not record it, this command '2222")],
)
def test_a_run_is_not_resumed_with_another_runtime_of_the_same_version(
    tmp_path: Path, recorded: str | None, told: str
) -> None:
    run = made_up_run(RunDirectory(tmp_path / "r"), ())
    manifests = [
        made_up_manifest().model_copy(
            update={"claws": {"nanobot": ClawVersion.model_validate(CLAW | {"runtime_sha256": digest})}}
        )
        for digest in (recorded, "2" * 64)
    ]
    run.open(manifests[0])
    with pytest.raises(RunError) as refused:
        run.open(manifests[1])
    assert f"claws.nanobot.runtime_sha256: {told}" in str(refused.value)


def test_the_digest_of_an_adapter_covers_all_of_its_package(tmp_path: Path) -> None:
    """The class's own module is one of several; an adapter from outside the tree may be a single file."""
    package = tmp_path / "toy"
    package.mkdir()
    (package / "toy_adapter.py").write_text("class Toy: pass\n")
    (package / "toy_config.py").write_text("TURNS = 1\n")
    before = digest_in(tmp_path, "toy.toy_adapter")
    (package / "toy_config.py").write_text("TURNS = 2\n")
    assert digest_in(tmp_path, "toy.toy_adapter") == before
    (package / "__init__.py").touch()
    in_a_package = digest_in(tmp_path, "toy.toy_adapter")
    (package / "toy_config.py").write_text("TURNS = 1\n")
    assert digest_in(tmp_path, "toy.toy_adapter") not in (before, in_a_package)
    assert adapter_digest(NanobotAdapter()) != before


def digest_in(folder: Path, module: str) -> str:
    """The digest of an adapter, in a process that has not imported it yet."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from importlib import import_module; "
        "from clawbench.run.manifest import adapter_digest; print(adapter_digest(import_module(sys.argv[2]).Toy()))"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", code, str(folder), module],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_the_recipe_of_prepared_images_covers_the_judgement_of_what_they_hold(tmp_path: Path) -> None:
    """Images that were prepared under a laxer judgement are not used."""

    def recipe() -> str:
        code = "from workspace.prepare import recipe_digest; print(recipe_digest())"
        done = subprocess.run(
            [sys.executable, "-B", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return done.stdout

    for room in ("workspace", "common"):
        shutil.copytree(ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__"))
    before, module = recipe(), tmp_path / "workspace/prepare.py"
    strict = 'if any(int(count) for count in facts["foreign"]):'
    assert strict in module.read_text()
    module.write_text(module.read_text().replace(strict, "if False:"))
    assert recipe() != before
