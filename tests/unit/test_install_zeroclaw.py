"""Installing zeroclaw with the real cargo, on tiny crates in a folder that stands for the registry."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from adapters.runtimes import MARKER
from clawbench.install import zeroclaw_installer
from clawbench.install.base import InstallError
from clawbench.install.install_claw import install
from clawbench.install.zeroclaw_installer import CargoInstaller

HELPER = 'pub fn name() -> &\'static str { "tinyclaw" }'
MAIN = 'fn main() { println!("{} 0.1.0", helper::name()); }'
BUILD = """
use std::io::Write;
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(env!("COUNT")).unwrap();
    writeln!(file, "once more").unwrap();
}
"""


class World:
    """A registry with a crate `tinyclaw` that needs a crate `helper`, and a home to install it in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.built = folder / "built.txt"
        self.said: list[str] = []
        self.crate("helper", "", {"src/lib.rs": HELPER, "build.rs": BUILD})
        self.crate("tinyclaw", '[dependencies]\nhelper = "=0.1.0"\n', {"src/main.rs": MAIN})

    def crate(self, name: str, manifest: str, files: dict[str, str], rust: str = "1.56") -> None:
        place = self.folder / "registry" / name
        package = f'[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2021"\nrust-version = "{rust}"\n'
        lock = 'version = 3\n[[package]]\nname = "tinyclaw"\nversion = "0.1.0"\ndependencies = ["helper"]\n'
        lock += '[[package]]\nname = "helper"\nversion = "0.1.0"\n'
        lock += 'source = "registry+https://github.com/rust-lang/crates.io-index"\n'
        written = {"Cargo.toml": package + manifest, "Cargo.lock": lock, **files}
        written[".cargo-checksum.json"] = json.dumps({"files": {}})
        for relative, content in written.items():
            (place / relative).parent.mkdir(parents=True, exist_ok=True)
            (place / relative).write_text(content)

    def install(self) -> None:
        install("zeroclaw", self.said.append, self.home)

    @property
    def binary(self) -> Path:
        return self.home / "zeroclaw" / "0.1.0" / "bin" / "tinyclaw"

    def hidden(self) -> list[str]:
        return sorted(path.name for path in (self.home / "zeroclaw").glob(".*") if path.name != ".lock")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    if zeroclaw_installer._find_cargo() is None:
        pytest.skip("there is no cargo")
    made = World(tmp_path)
    cargo_home = tmp_path / "cargo"
    cargo_home.mkdir()
    source = f'[source.crates-io]\nreplace-with = "here"\n[source.here]\ndirectory = "{tmp_path}/registry"\n'
    (cargo_home / "config.toml").write_text(source)
    monkeypatch.setenv("PATH", f"{Path('~/.cargo/bin').expanduser()}:{os.environ['PATH']}")
    monkeypatch.setenv("CARGO_HOME", str(cargo_home))
    monkeypatch.setenv("CARGO_NET_OFFLINE", "true")
    monkeypatch.setenv("COUNT", str(made.built))
    tiny = CargoInstaller("tinyclaw", "0.1.0", "tinyclaw")
    monkeypatch.setattr("clawbench.install.install_claw.installer", lambda _: tiny)
    return made


def test_the_binary_is_kept_and_what_was_compiled_is_not(world: World) -> None:
    world.install()
    done = subprocess.run([world.binary], capture_output=True, text=True, check=True)
    assert done.stdout == "tinyclaw 0.1.0\n"
    assert (world.home / "zeroclaw" / "0.1.0" / MARKER).exists()
    assert world.hidden() == []
    assert any("45 minutes" in line for line in world.said)
    shutil.rmtree(world.folder / "registry")
    world.install()
    assert "already" in world.said[-1]


def test_an_install_goes_on_with_what_an_earlier_one_compiled(world: World) -> None:
    (world.folder / "registry" / "tinyclaw" / "src" / "main.rs").write_text("fn main() { broken")
    with pytest.raises(InstallError, match=r"could not be compiled.*rustup update.*cargo 1(?s:.*)error"):
        world.install()
    assert not world.binary.exists()
    assert world.hidden() == [".build-0.1.0"]
    (world.folder / "registry" / "tinyclaw" / "src" / "main.rs").write_text(MAIN)
    world.install()
    assert world.binary.exists()
    assert world.hidden() == []
    assert world.built.read_text() == "once more\n"


def test_a_rust_that_is_said_to_be_too_old_is_tried_all_the_same(world: World) -> None:
    world.crate("tinyclaw", '[dependencies]\nhelper = "=0.1.0"\n', {}, rust="1.9999")
    world.install()
    assert world.binary.exists()
    assert any("newer Rust" in line for line in world.said)


def test_without_cargo_it_says_where_to_get_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(world.folder))
    with pytest.raises(InstallError, match=r"rustup\.rs.*ZEROCLAW_BIN"):
        world.install()
    assert world.hidden() == []


def test_a_version_that_the_registry_does_not_have_is_an_error(world: World) -> None:
    shutil.rmtree(world.folder / "registry" / "tinyclaw")
    with pytest.raises(InstallError, match="tinyclaw"):
        world.install()
