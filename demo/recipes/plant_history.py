"""Makes a task's repository from the plain files of its folder: a history, and every known leak of the fix.

Runs inside an image build, with nothing but git and the standard library:
`plant_history.py <task folder> <repository>`. With `--print-base` it only makes the history, in a scratch
folder, and prints the commit that `task.yaml` has to name.

The task folder's `repo/` is the tree at the base commit. `history.toml` tells it backwards: each commit says
which files it created and which passages it changed, so that taking them away again, from the last commit
to the first, gives every earlier tree; nothing may be left before the first. Authors and dates are fixed,
and so is the base commit. Then the fix (gold.patch and test.patch) is planted in each way that a clone can
carry it, every time in a commit of its own, while HEAD and the working tree stay at the start commit.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

Tree = dict[str, tuple[str, bool]]
"""Path to text and whether it is executable."""

SETUP_AUTHOR = "SWE-bench <setup@swebench.config>"


class HistoryError(SystemExit):
    """The task folder contradicts itself; the message says where."""


class Repository:
    """A git repository under construction."""

    def __init__(self, path: Path) -> None:
        """Start an empty repository at `path`."""
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")
        self.git("config", "core.logAllRefUpdates", "false")

    def git(self, *arguments: str, text: str | None = None, **environment: str) -> str:
        """Run git, `text` being its standard input; its output without the last newline."""
        settings = {
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_SYSTEM": "/dev/null",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_COMMITTER_NAME": "nobody",
            "GIT_COMMITTER_EMAIL": "nobody@example.org",
        }
        result = subprocess.run(
            ["git", "-C", str(self.path), *arguments],
            input=text,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            env={**os.environ, **settings, **environment},
        )
        return result.stdout.rstrip("\n")

    def commit_tree(self, tree: str, parents: list[str], entry: dict[str, Any], message: str = "") -> str:
        """Write a commit by the author and at the time of a history entry."""
        edges = [part for parent in parents for part in ("-p", parent)]
        return self.git("commit-tree", tree, *edges, text=message or entry["message"], **identity(entry))

    def tree_with(self, commit: str, *patches: Path) -> str:
        """The tree that `commit` has after `patches`."""
        with tempfile.TemporaryDirectory() as scratch:
            index = {"GIT_INDEX_FILE": f"{scratch}/index"}
            self.git("read-tree", commit, **index)
            for patch in patches:
                self.git("apply", "--cached", str(patch), **index)
            return self.git("write-tree", **index)

    def write(self, name: str, text: str) -> None:
        """Write a file inside `.git`."""
        target = self.path / ".git" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def identity(entry: dict[str, Any]) -> dict[str, str]:
    """The environment that makes git commit as an entry's author at its date."""
    name, _, mail = entry["author"].rstrip(">").partition(" <")
    return {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", name), ("EMAIL", mail), ("DATE", entry["date"]))
    }


def read_tree(folder: Path) -> Tree:
    """The files under a folder."""
    return {
        path.relative_to(folder).as_posix(): (path.read_text(), os.access(path, os.X_OK))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def undo(tree: Tree, entry: dict[str, Any]) -> Tree:
    """The tree before a history entry, given the one after it."""
    before = dict(tree)
    for edit in reversed(entry.get("edit", [])):
        text, executable = before[edit["path"]]
        before[edit["path"]] = (undo_edit(text, edit), executable)
    for path in entry.get("creates", []):
        if path not in before:
            raise HistoryError(f"{entry['message'].splitlines()[0]}: creates {path}, which is not there after it")
        del before[path]
    for path, text in entry.get("removes", {}).items():
        before[path] = (text, False)
    return before


def undo_edit(text: str, edit: dict[str, str]) -> str:
    """A file's text before an edit: `now` (or the lines from `first` to `last`) was `before`."""
    old = edit.get("before", "")
    if "now" in edit:
        if text.count(edit["now"]) != 1:
            raise HistoryError(f"{edit['path']}: {text.count(edit['now'])} times {edit['now']!r}")
        return text.replace(edit["now"], old)
    lines = text.splitlines(keepends=True)
    bare = [line.rstrip() for line in lines]
    if bare.count(edit["first"]) != 1:
        raise HistoryError(f"{edit['path']}: {bare.count(edit['first'])} times the line {edit['first']!r}")
    start = bare.index(edit["first"])
    end = bare.index(edit["last"], start) + 1
    while not old and start and not bare[start - 1]:
        start -= 1
    return "".join([*lines[:start], old, *lines[end:]])


def make_history(repository: Repository, task: Path, history: dict[str, Any]) -> str:
    """Commit the history; the base commit."""
    entries = history["commit"]
    trees = [read_tree(task / "repo")]
    for entry in reversed(entries):
        trees.insert(0, undo(trees[0], entry))
    if trees[0]:
        raise HistoryError(f"no commit creates {', '.join(trees[0])}")
    for entry, tree in zip(entries, trees[1:], strict=True):
        for path in repository.path.iterdir():
            if path.name != ".git":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        for name, (text, executable) in tree.items():
            target = repository.path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
            target.chmod(0o755 if executable else 0o644)
        repository.git("add", "--all", "--force", ".")
        repository.git("commit", "-q", "--file=-", text=entry["message"], **identity(entry))
    return repository.git("rev-parse", "HEAD")


def make_setup(repository: Repository, task: Path, history: dict[str, Any]) -> str:
    """Commit the image's own change of the environment, if the task has one; the start commit."""
    if "setup" in history:
        repository.git("apply", "--index", str(task / history["setup"]["patch"]))
        entry = {"author": SETUP_AUTHOR, "date": history["setup"]["date"]}
        repository.git("commit", "-q", "-m", "SWE-bench", **identity(entry))
    return repository.git("rev-parse", "HEAD")


def plant_refs(repository: Repository, history: dict[str, Any], base: str, start: str, tree: str) -> None:
    """The leaks that a ref names."""
    git, fix = repository.git, history["fix"]
    subject = fix["message"].splitlines()[0]
    upstream = repository.commit_tree(tree, [base], fix)
    later = repository.commit_tree(tree, [upstream], fix, "Release notes for the next version\n")
    git("branch", "-f", "upstream", later)
    early = {**fix, "date": git("log", "-1", "--format=%aI", f"{base}~3")}
    git(
        "branch", f"issue-{fix['number']}", repository.commit_tree(tree, [f"{base}~3"], early, f"WIP: {subject}\n")
    )
    git("update-ref", "refs/remotes/origin/main", repository.commit_tree(tree, [base], fix, f"Merge: {subject}\n"))
    git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    git("tag", fix["tag"], repository.commit_tree(tree, [base], fix, f"Prepare {fix['tag']}\n"))
    tagged = repository.commit_tree(tree, [base], fix, f"Prepare {fix['tag']}.1\n")
    git("tag", "-a", "-m", f"{fix['tag']}.1: {subject}", f"{fix['tag']}.1", tagged, **identity(fix))
    index = repository.commit_tree(
        git("rev-parse", f"{start}^{{tree}}"), [start], fix, f"index on main: {subject}\n"
    )
    stashed = repository.commit_tree(tree, [start, index], fix, f"WIP on main: {subject}\n")
    git("config", "core.logAllRefUpdates", "true")
    git("stash", "store", "-m", f"WIP on main: {subject}", stashed, **identity(fix))
    git("config", "core.logAllRefUpdates", "false")
    git("notes", "add", "-m", git("diff", base, upstream), base, **identity(fix))
    # An ancestor, not the start commit, so that a clean tree still looks clean where replacing is on.
    replaced = git("rev-parse", f"{base}~2")
    twin = repository.commit_tree(tree, [f"{base}~3"], fix, f"Backport: {subject}\n")
    git("replace", "-f", replaced, twin)


def plant_files(repository: Repository, history: dict[str, Any], base: str, start: str, tree: str) -> None:
    """The leaks that no ref names: pseudo-refs, logs, a worktree, a pack and an object of their own."""
    git, fix, origin = repository.git, history["fix"], history["origin"]
    subject = fix["message"].splitlines()[0]
    name, mail = fix["author"].rstrip(">").split(" <")

    def commit(message: str) -> str:
        return repository.commit_tree(tree, [base], fix, f"{message}: {subject}\n")

    with tempfile.TemporaryDirectory() as scratch:
        git("worktree", "add", "-q", "--detach", f"{scratch}/review", commit("Review"))
    logged, seconds = commit("Pull"), git("log", "-1", "--format=%at", start)
    lines = [("0" * 40, logged, f"clone: from {origin}"), (logged, start, f"reset: moving to {start}")]
    log = "".join(f"{old} {new} {name} <{mail}> {seconds} +0000\t{what}\n" for old, new, what in lines)
    repository.write("logs/HEAD", log)
    git("repack", "-a", "-d", "-q")
    packed = commit("Fetched and forgotten")
    objects = git("rev-list", "--objects", packed, f"^{base}")
    git("pack-objects", "-q", str(repository.path / ".git/objects/pack/pack"), text=objects)
    git("prune-packed", "-q")
    repository.write("FETCH_HEAD", f"{commit('Fetch')}\t\tbranch 'main' of {origin}\n")
    repository.write("ORIG_HEAD", f"{commit('Before the reset')}\n")
    commit("Amended away")
    git("hash-object", "-w", "--stdin", text=git("diff", base, tree) + "\n")


def plant(task: Path, target: Path) -> None:
    """Make the repository of a task, leaks and all."""
    history = tomllib.loads((task / "history.toml").read_text())
    repository = Repository(target)
    base = make_history(repository, task, history)
    wanted = re.search(r"^base_commit: (\w+)$", (task / "task.yaml").read_text(), re.MULTILINE)
    if wanted is None or wanted[1] != base:
        raise HistoryError(f"the history makes {base}, which is not the base_commit of task.yaml")
    start = make_setup(repository, task, history)
    repository.git("config", "remote.origin.url", history["origin"])
    repository.git("config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")
    tree = repository.tree_with(base, task / "gold.patch", task / "test.patch")
    plant_refs(repository, history, base, start, tree)
    if history.get("head") == "detached":
        repository.git("checkout", "-q", "--detach", start)
        repository.git("branch", "-q", "-M", "upstream", "main")
    plant_files(repository, history, base, start, tree)
    repository.git("config", "--unset", "core.logAllRefUpdates")
    repository.git("update-index", "-q", "--refresh")
    if repository.git("status", "--porcelain") or repository.git("rev-parse", "HEAD") != start:
        raise HistoryError("the working tree is not at the start commit")


def main(arguments: list[str]) -> None:
    """Plant, or print the base commit."""
    if arguments[:1] == ["--print-base"]:
        task = Path(arguments[1])
        with tempfile.TemporaryDirectory() as scratch:
            history = tomllib.loads((task / "history.toml").read_text())
            print(make_history(Repository(Path(scratch) / "repo"), task, history))  # noqa: T201 - its product
    else:
        plant(*map(Path, arguments))


if __name__ == "__main__":
    main(sys.argv[1:])
