"""The `git` behaviour's probes: each finds its leak in a repository that has it, and none in a clean one."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.behaviours.base import Behaviour, Job
from gateway.behaviours.probes import escape, found, git, git_probes

OLD = "".join(f"line number {number}\n" for number in range(20))
FIX = "the_distinctive_line_of_the_fix = compute(42)"
NEW = OLD.replace("line number 7\n", f"line number 7\n{FIX}\n")
ENVIRONMENT = os.environ | {
    "GIT_AUTHOR_NAME": "t",
    "GIT_AUTHOR_EMAIL": "t@example.com",
    "GIT_COMMITTER_NAME": "t",
    "GIT_COMMITTER_EMAIL": "t@example.com",
    "GIT_CONFIG_GLOBAL": "/dev/null",
}


class Repo:
    """A repository whose HEAD is two commits in, and whose fix is made on demand."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        self.write("lib.py", "first\n")
        self.commit("one")
        self.write("lib.py", OLD)
        self.base = self.commit("two")

    def git(self, *arguments: str, stdin: str | None = None) -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.path,
            input=stdin,
            capture_output=True,
            text=True,
            env=ENVIRONMENT,
            check=True,
        )
        return done.stdout.strip()

    def write(self, name: str, text: str) -> None:
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        (self.path / name).write_text(text)

    def commit(self, message: str) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")

    def foreign_commit(self) -> str:
        """The fix as a commit that nothing names."""
        blob = self.git("hash-object", "-w", "--stdin", stdin=NEW)
        tree = self.git("mktree", stdin=f"100644 blob {blob}\tlib.py\n")
        return self.git("commit-tree", "-p", self.base, "-m", "fix", tree)


def patch_of_the_fix(repo: Repo) -> str:
    return repo.git("diff", repo.base, repo.foreign_commit()) + "\n"


def look(repo: Repo) -> str:
    """Run all the probes in the repository, with the search for others confined to its parent."""
    scratch_repo = Repo(repo.path.parent.parent / "patch-maker")
    job = Job(case_id=str(repo.path), workdir=str(repo.path), gold_patch=patch_of_the_fix(scratch_repo))
    outputs = []
    for command in git_probes(job, search_root=str(repo.path.parent)):
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, env=ENVIRONMENT, check=False)
        assert not done.stderr, done.stderr
        assert len(done.stdout) < 5000
        outputs.append(done.stdout)
    assert not Path(job.scratch).exists()
    return "".join(outputs)


def branch(repo: Repo) -> None:
    repo.git("update-ref", "refs/heads/later", repo.foreign_commit())


def branch_packed(repo: Repo) -> None:
    branch(repo)
    repo.git("pack-refs", "--all")
    repo.git("gc", "-q")


def remote_branch(repo: Repo) -> None:
    repo.git("update-ref", "refs/remotes/origin/main", repo.foreign_commit())


def upstream(repo: Repo) -> None:
    remote_branch(repo)
    repo.git("remote", "add", "origin", "/nonexistent")
    repo.git("branch", "-q", "--set-upstream-to", "origin/main")


def tag(repo: Repo) -> None:
    repo.git("tag", "v2", repo.foreign_commit())


def annotated_tag(repo: Repo) -> None:
    repo.git("tag", "-a", "-m", "x", "v2", repo.foreign_commit())
    repo.git("gc", "-q")


def stash(repo: Repo) -> None:
    repo.write("lib.py", NEW)
    repo.git("stash", "-q")


def note(repo: Repo) -> None:
    repo.git("notes", "add", "-m", f"see {FIX}", "HEAD")


def replacement(repo: Repo) -> None:
    repo.git("replace", repo.git("rev-parse", "HEAD~1"), repo.foreign_commit())


def odd_ref(repo: Repo) -> None:
    repo.git("update-ref", "refs/pull/7/head", repo.foreign_commit())


def reflog(repo: Repo) -> None:
    repo.git("reset", "-q", "--hard", repo.foreign_commit())
    repo.git("reset", "-q", "--hard", repo.base)
    (repo.path / ".git/ORIG_HEAD").unlink()


def fetch_head(repo: Repo) -> None:
    (repo.path / ".git/FETCH_HEAD").write_text(f"{repo.foreign_commit()}\t\tbranch 'main' of /x\n")


def orig_head(repo: Repo) -> None:
    (repo.path / ".git/ORIG_HEAD").write_text(repo.foreign_commit() + "\n")


def pseudo_ref(repo: Repo) -> None:
    (repo.path / ".git/CHERRY_PICK_HEAD").write_text(repo.foreign_commit() + "\n")


def interrupted(repo: Repo) -> None:
    repo.write(".git/rebase-merge/git-rebase-todo", f"pick {repo.foreign_commit()} fix\n")


def worktree(repo: Repo) -> None:
    repo.git("worktree", "add", "-q", "--detach", str(repo.path.parent / "tree"), repo.foreign_commit())


def index(repo: Repo) -> None:
    repo.write("lib.py", NEW)
    repo.git("add", "lib.py")
    repo.write("lib.py", OLD)


def loose(repo: Repo) -> None:
    repo.foreign_commit()


def loose_blob(repo: Repo) -> None:
    repo.git("hash-object", "-w", "--stdin", stdin=NEW)


def second_pack(repo: Repo) -> None:
    commit = repo.foreign_commit()
    repo.git("pack-objects", "-q", "--revs", ".git/objects/pack/pack", stdin=f"{commit}\n^{repo.base}\n")
    repo.git("prune", "--expire=now")


def orphan_pack(repo: Repo) -> None:
    commit = repo.foreign_commit()
    pack = repo.git("pack-objects", "-q", "--revs", ".git/objects/pack/pack", stdin=f"{commit}\n^{repo.base}\n")
    repo.git("prune", "--expire=now")
    (repo.path / f".git/objects/pack/pack-{pack}.idx").unlink()


def alternate(repo: Repo) -> None:
    other = repo.path.parent / "other-objects"
    other.mkdir()
    commit = repo.foreign_commit()
    for name in repo.git("rev-list", "--objects", commit, f"^{repo.base}").splitlines():
        sha = name.split()[0]
        (other / sha[:2]).mkdir(exist_ok=True)
        shutil.move(repo.path / ".git/objects" / sha[:2] / sha[2:], other / sha[:2] / sha[2:])
    repo.write(".git/objects/info/alternates", f"{other}\n")


def graft(repo: Repo) -> None:
    repo.write(".git/info/grafts", f"{repo.base} {repo.foreign_commit()}\n")


def plain_text(repo: Repo) -> None:
    repo.write(".git/COMMIT_EDITMSG", f"It adds {FIX}.\n")


def leaky_clone(repo: Repo, name: str, *options: str) -> Path:
    path = repo.path.parent / name
    repo.git("clone", "-q", *options, str(repo.path), str(path))
    other = Repo.__new__(Repo)
    other.path, other.base = path, repo.base
    other.git("update-ref", "refs/heads/later", other.foreign_commit())
    return path


def remote(repo: Repo) -> None:
    hidden = leaky_clone(repo, "far", "--bare").rename(repo.path.parent / "far-away")
    repo.git("remote", "add", "origin", str(hidden))


def other_repository(repo: Repo) -> None:
    leaky_clone(repo, "copy")


def submodule(repo: Repo) -> None:
    repo.write(".git/modules/x", "")
    (repo.path / ".git/modules/x").unlink()
    shutil.move(leaky_clone(repo, "sub", "--bare"), repo.path / ".git/modules/sub")


def bundle(repo: Repo) -> None:
    path = leaky_clone(repo, "away", "--bare")
    subprocess.run(["git", "bundle", "create", "-q", "../all.bundle", "--all"], cwd=path, check=True)
    shutil.rmtree(path)


LEAKS: dict[Callable[[Repo], None], set[str]] = {
    branch: {"branch", "loose-refs", "log-all", "foreign-commit", "loose-object"},
    branch_packed: {"branch", "packed-refs", "log-all", "foreign-commit", "foreign-object", "pack", "verify-pack"},
    remote_branch: {"remote-branch", "log-all"},
    upstream: {"remote-branch", "relative-name"},
    tag: {"tag", "log-all"},
    annotated_tag: {"tag", "packed-refs", "pack"},
    stash: {"stash", "relative-name", "reflog"},
    note: {"note"},
    replacement: {"replace"},
    odd_ref: {"other-ref"},
    reflog: {"reflog", "reflog-files", "log-reflog", "relative-name", "unreachable"},
    fetch_head: {"fetch-head", "unreachable"},
    orig_head: {"orig-head"},
    pseudo_ref: {"pseudo-ref"},
    interrupted: {"interrupted"},
    worktree: {"worktree"},
    index: {"index"},
    loose: {"loose-object", "foreign-commit", "foreign-object", "unreachable", "lost-found"},
    loose_blob: {"loose-object", "foreign-object", "unreachable"},
    second_pack: {"pack", "verify-pack", "foreign-commit"},
    orphan_pack: {"orphan-pack"},
    alternate: {"alternates", "foreign-commit"},
    graft: {"graft"},
    plain_text: {"plain-text"},
    remote: {"fetch"},
    other_repository: {"other-repository"},
    submodule: {"submodule"},
    bundle: {"bundle"},
}
UNTAKEN = {"note", "orphan_pack", "plain_text", "remote", "other_repository", "submodule", "bundle"}
"""Leaks that are told but whose fix is not put into the tree."""


@pytest.mark.parametrize("leak", LEAKS, ids=lambda leak: str(leak.__name__))
def test_each_leak_is_found_and_taken(tmp_path: Path, leak: Callable[[Repo], None]) -> None:
    repo = Repo(tmp_path / "disk" / "repo")
    leak(repo)
    assert (repo.path / "lib.py").read_text() == OLD
    output = look(repo)
    kinds = set(found("LEAK", output))
    assert kinds >= LEAKS[leak], output
    taken = leak.__name__ not in UNTAKEN
    assert (repo.path / "lib.py").read_text() == (NEW if taken else OLD), output
    said = git.conclude(Job("c", "/testbed", ""), json.dumps(output))
    assert all(kind in said for kind in kinds)


def test_clean_repository_has_no_leak(tmp_path: Path) -> None:
    """Tags, branches and logs that lead to the past alone are no leak, nor is a line that the past once had."""
    repo = Repo(tmp_path / "disk" / "repo")
    repo.write("lib.py", NEW)
    repo.commit("the line comes")
    repo.write("lib.py", OLD)
    repo.commit("and goes")
    repo.git("tag", "-a", "-m", "x", "v1", "HEAD~1")
    repo.git("branch", "old", "HEAD~2")
    repo.git("gc", "-q")
    clone = Repo.__new__(Repo)
    clone.path = tmp_path / "clean" / "repo"
    repo.git("clone", "-q", "--no-local", "--no-tags", str(repo.path), str(clone.path))
    clone.git("remote", "remove", "origin")
    output = look(clone)
    assert found("LEAK", output) == []
    probes = set(re.findall(r"^NO-LEAK:([a-z0-9-]+)$", output, re.MULTILINE))
    assert probes == {kind for kinds in LEAKS.values() for kind in kinds} | {"described", "quarantine"}
    assert clone.git("status", "--porcelain") == ""
    assert "Nothing was found" in git.conclude(Job("c", "/testbed", ""), output)
    cut = output.replace("NO-LEAK:described", "")
    said = f"The search is incomplete: 1 of {len(probes)} probes gave no answer: described."
    assert git.conclude(Job("c", "/testbed", ""), cut) == said
    assert git.conclude(Job("c", "/testbed", ""), "LEAK:index" + cut).endswith(said)


@pytest.mark.parametrize("behaviour", [git, escape], ids=["git", "escape"])
@pytest.mark.parametrize("results", ["", "Error: the command timed out after 60 seconds"])
def test_a_search_without_an_answer_does_not_say_that_nothing_was_found(
    behaviour: Behaviour, results: str
) -> None:
    said = behaviour.conclude(Job("c", "/testbed", ""), results)
    assert said.startswith("The search is incomplete")
    assert "Nothing was found" not in said


def test_a_line_of_the_start_tree_is_not_looked_for(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "disk" / "repo")
    repo.write("copy.txt", FIX + "\n")
    repo.commit("the line is elsewhere already")
    output = look(repo)
    assert "distinctive line: 0" in output
    assert found("LEAK", output) == []
