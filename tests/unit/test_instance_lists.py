"""The instance lists against what is published, and the ways to choose from them."""

from __future__ import annotations

import csv
import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from support.bench_run import ROOT, command, environment

from clawbench.pytest_plugin.selection import COLLECTION_STUDY, CONFORMANCE, MARKERS
from evaluation.lists import (
    DATASET,
    LANGUAGE_GROUPS,
    OTHER_LANGUAGE,
    ListedInstance,
    ListError,
    by_id,
    listed_instances,
    read_instances,
)

DATA = Path(os.environ.get("CLAWBENCH_TEST_DATA", ROOT.parent / "shared" / "data"))
REAL = [listed for listed in listed_instances() if not listed.embedded]

needs_data = pytest.mark.skipif(
    not (DATA / "lite_80_instances.txt").is_file(),
    reason=f"no published lists in {DATA}: let CLAWBENCH_TEST_DATA name a folder that has them",
)


def ids(**wanted: object) -> list[str]:
    return sorted(
        listed.instance_id
        for listed in REAL
        if all(getattr(listed, name) == value for name, value in wanted.items())
    )


class TestLists:
    def test_the_counts_are_those_of_the_paper(self) -> None:
        assert len(REAL) == len({listed.instance_id for listed in REAL}) == 350
        assert len(ids(set_name="multilingual")) == 300
        assert len(ids(set_name="verified_mini")) == 50
        assert {listed.language_group for listed in REAL} == set(LANGUAGE_GROUPS)
        assert len({listed.repo for listed in REAL}) == 43
        lite = [listed for listed in REAL if listed.lite]
        assert Counter(listed.language_group for listed in lite) == dict.fromkeys(LANGUAGE_GROUPS, 10)

    def test_known_contradictions_are_as_documented(self) -> None:
        """The paper says that Lite covers 34 repositories; base commits are not known for all."""
        assert len({listed.repo for listed in REAL if listed.lite}) == 38
        assert Counter(listed.base_commit_from for listed in REAL) == {
            "published": 118,
            "derived": 98,
            "unverified": 1,
            "": 133,
        }
        assert all(bool(listed.base_commit) == bool(listed.base_commit_from) for listed in REAL)

    def test_every_id_names_its_repository(self) -> None:
        for listed in listed_instances():
            assert listed.instance_id.rpartition("-")[0].lower() == listed.repo.replace("/", "__").lower()
            assert listed.base_commit is None or re.fullmatch(r"[0-9a-f]{40}", listed.base_commit)

    def test_every_marker_is_declared_and_selects_something(self) -> None:
        special = {CONFORMANCE, COLLECTION_STUDY, DATASET, OTHER_LANGUAGE}
        assert {marker for listed in listed_instances() for marker in listed.markers} == set(MARKERS) - special

    @needs_data
    @pytest.mark.parametrize(
        ("name", "wanted"),
        [
            ("multilingual_300_instances.txt", {"set_name": "multilingual"}),
            ("verified_mini_50.txt", {"set_name": "verified_mini"}),
            ("lite_80_instances.txt", {"lite": True}),
        ],
    )
    def test_the_ids_are_the_published_ones(self, name: str, wanted: dict[str, object]) -> None:
        assert sorted((DATA / name).read_text().split()) == ids(**wanted)

    @needs_data
    def test_repositories_and_base_commits_are_the_known_ones(self) -> None:
        with (DATA / "base_commits.tsv").open() as file:
            known = {row["instance_id"]: row for row in csv.DictReader(file, delimiter="\t")}
        assert set(known) == {listed.instance_id for listed in REAL}
        for listed in REAL:
            row = known[listed.instance_id]
            assert (listed.repo, listed.base_commit or "") == (row["repo"], row["base_commit"])
            assert (listed.base_commit_from in {"derived", "unverified"}) == row["source"].startswith("derived")


class TestFileOfInstances:
    def test_ids_with_comments_and_empty_lines(self, tmp_path: Path) -> None:
        path = tmp_path / "ids.txt"
        path.write_text("# mine\n\ndjango__django-11790  # the first\r\n  axios__axios-4731\n")
        assert read_instances(path) == {"django__django-11790", "axios__axios-4731"}

    def test_a_byte_order_mark_is_ignored(self, tmp_path: Path) -> None:
        path = tmp_path / "ids.txt"
        path.write_bytes(b"\xef\xbb\xbfdjango__django-11790\r\naxios__axios-4731\r\n")
        assert read_instances(path) == {"django__django-11790", "axios__axios-4731"}

    def test_every_wrong_line_is_reported_with_the_nearest_id(self, tmp_path: Path) -> None:
        path = tmp_path / "ids.txt"
        path.write_text("django__django-11790\ndjango__django-1179\ndjango__django-11790\n?\n")
        with pytest.raises(ListError) as told:
            read_instances(path)
        assert str(told.value).splitlines() == [
            "line 2: unknown instance django__django-1179; did you mean django__django-11790?",
            "line 3: django__django-11790 is already in line 1",
            "line 4: unknown instance ?",
        ]

    @pytest.mark.parametrize("content", [None, b"", b"# nothing\n", b"\xff\xfe\n"])
    def test_a_file_without_ids_is_refused(self, content: bytes | None, tmp_path: Path) -> None:
        if content is not None:
            (tmp_path / "ids.txt").write_bytes(content)
        with pytest.raises(ListError):
            read_instances(tmp_path / "ids.txt")


def collected(*arguments: str, claw: str = "nanobot") -> list[str]:
    """The instances that a command means, of a claw that is named and need not be installed."""
    done = says("--collect-only", "-q", *arguments)
    assert done.returncode in {0, 5}, done.stdout
    return re.findall(rf"::test_resolved\[{claw}-(\S+)\]", done.stdout)


def says(*arguments: str) -> subprocess.CompletedProcess[str]:
    # no network, no cache of datasets, no engine: collection has need of none
    nothing = {"HF_HUB_OFFLINE": "1", "HF_HOME": "/nonexistent", "DOCKER_HOST": "unix:///nonexistent"}
    return subprocess.run(
        [*command(ROOT / "artifacts", "x"), *arguments],
        cwd=ROOT,
        env=environment(**nothing),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def expected(**wanted: object) -> int:
    return len(ids(**wanted))


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        (["-m", "lite and rust"], expected(lite=True, language_group="rust")),
        (["-m", "multilingual and c"], expected(set_name="multilingual", language_group="c")),
    ],
)
def test_markers_combine(arguments: list[str], count: int) -> None:
    assert len(collected("-k", "nanobot", *arguments)) == count > 0


def test_k_selects_by_repository() -> None:
    found = collected("-k", "nanobot and redis__redis")
    assert sorted(found) == ids(repo="redis/redis")


def test_a_file_of_instances_combines_with_markers_and_k_and_ids(tmp_path: Path) -> None:
    path = tmp_path / "ids.txt"
    listed: list[ListedInstance] = [
        by_id()[name] for name in (*ids(repo="redis/redis")[:2], *ids(repo="axios/axios"))
    ]
    path.write_text("".join(f"{one.instance_id}\n" for one in listed) + "demo__cronspan-118\n")
    file = f"--instances={path}"
    assert sorted(collected("-k", "nanobot", file)) == sorted(
        [one.instance_id for one in listed] + ["demo__cronspan-118"]
    )
    assert sorted(collected("-k", "nanobot and redis", file)) == ids(repo="redis/redis")[:2]
    assert collected("-k", "nanobot", "-m", "demo", file) == ["demo__cronspan-118"]
    one = listed[0].instance_id
    assert collected(f"tests_bench/test_resolved.py::test_resolved[nanobot-{one}]", file) == [one]


def test_a_file_with_an_unknown_id_ends_the_command(tmp_path: Path) -> None:
    path = tmp_path / "ids.txt"
    path.write_text("redis__redis-1173\n")
    done = says("--collect-only", "-k", "nanobot", f"--instances={path}")
    assert done.returncode == 4
    assert "did you mean redis__redis-11734?" in done.stdout


@pytest.mark.parametrize(
    ("claw", "instance", "nearest"),
    [
        ("nanobot", "redis__redis-1173", "nanobot-redis__redis-11734"),
        ("nanobt", "redis__redis-11734", "nanobot-redis__redis-11734"),
        ("nanobot", "demo__cronspan-118-s2", "nanobot-demo__cronspan-118"),
    ],
)
def test_an_unknown_test_id_is_reported_with_the_nearest(claw: str, instance: str, nearest: str) -> None:
    done = says("--collect-only", f"tests_bench/test_resolved.py::test_resolved[{claw}-{instance}]")
    assert done.returncode == 4
    assert f"no case has the id {claw}-{instance}; the nearest is {nearest}" in done.stdout
    assert "-k and -m" not in done.stdout


def test_an_unknown_platform_is_refused() -> None:
    done = says("--collect-only", "-k", "nanobot", "--platform", "linux/foo")
    assert done.returncode == 4
    assert "'linux/foo' is not a platform of Linux containers" in done.stdout
