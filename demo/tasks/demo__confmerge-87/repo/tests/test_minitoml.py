import pytest

from confmerge import Config, ConfigSyntaxError
from confmerge._minitoml import TOMLError, loads


def test_tables_and_scalars():
    assert loads('a = 1\n[b.c]\nd = "x # y"  # comment\ne = true\nf = 1_000.5\n') == {
        "a": 1,
        "b": {"c": {"d": "x # y", "e": True, "f": 1000.5}},
    }


def test_arrays_on_one_line():
    assert loads('a = [1, [2, 3], "x, y"]') == {"a": [1, [2, 3], "x, y"]}


def test_errors():
    with pytest.raises(TOMLError):
        loads("a = 1\na = 2")


def test_through_config(tmp_path):
    (tmp_path / "x.toml").write_text("a = 1\nb\n")
    with pytest.raises(ConfigSyntaxError, match=r"x\.toml:2: "):
        Config.load(tmp_path / "x.toml")
