"""Repositories with a task: a state before, and the patch to the one after."""

from __future__ import annotations

import subprocess
from pathlib import Path


def git(repo: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "core.autocrlf=false"]
    command = ["git", *identity, *arguments]
    done = subprocess.run(command, cwd=repo, capture_output=True, check=True)
    return done.stdout.decode()


def commit_tree(repo: Path, files: dict[str, bytes], message: str = "x") -> None:
    """Make the repository hold exactly these files, and commit that."""
    for path in repo.rglob("*"):
        if path.is_file() and ".git" not in path.parts:
            path.unlink()
    for name, content in files.items():
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_bytes(content)
    git(repo, "add", "-A", "-f")
    git(repo, "commit", "-q", "--allow-empty", "-m", message)


def make_task(repo: Path, before: dict[str, bytes], after: dict[str, bytes]) -> str:
    """A repository at `before`, and the patch from there to `after`."""
    repo.mkdir(parents=True)
    git(repo, "init", "-q", "-b", "main")
    commit_tree(repo, before)
    commit_tree(repo, after)
    patch = subprocess.run(
        ["git", "diff", "--binary", "HEAD~1", "HEAD"], cwd=repo, capture_output=True, check=True
    ).stdout.decode()
    git(repo, "reset", "-q", "--hard", "HEAD~1")
    git(repo, "clean", "-qfdx")
    return patch
