"""The behaviours that edit the repository: correctly, wrongly, half, slowly, or not at all."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache

from gateway.behaviours import patches
from gateway.behaviours.base import Behaviour, Job, Pace, in_order, run_script, script, upload
from gateway.behaviours.message_damage import CONDITIONS, INTACT

SLOW = Pace(before=1.0, between=0.3)

_TOUCH_ANY_SOURCE = """
cd "$workdir" || exit 1
file=$(git ls-files | grep -E '\\.(py|js|ts|go|rs|java|php|rb|c|cc|cpp|h)$' | head -n 1)
[ -n "$file" ] || file=$(git ls-files | head -n 1)
printf '\\n' >> "$file" && echo "edited $file"
"""


def apply_commands(job: Job, patch: str) -> list[str]:
    """The commands that bring a patch into the container and apply it; none for an empty patch."""
    if not patch:
        return []
    apply = run_script(job.parameters() + script("apply.sh"))
    return [*upload(patch.encode(), job.scratch, "change.patch"), apply]


@lru_cache(maxsize=64)
def gold_edit(job: Job) -> Sequence[str]:
    """Edit the tree as the gold patch does."""
    return apply_commands(job, job.gold_patch)


@lru_cache(maxsize=64)
def wrong_edit(job: Job) -> Sequence[str]:
    """Edit a file that the gold patch edits, at the same place, without fixing anything."""
    edit = apply_commands(job, patches.harmless(job.gold_patch))
    return edit or [run_script(job.parameters() + _TOUCH_ANY_SOURCE)]


@lru_cache(maxsize=64)
def partial_edit(job: Job) -> Sequence[str]:
    """Apply the first half of the gold patch's hunks; where it has only one, edit wrongly."""
    return apply_commands(job, patches.half(job.gold_patch)) or wrong_edit(job)


def _fixed(job: Job, _results: str) -> str:
    if not job.gold_patch:
        return "No fix is known for this issue. I changed nothing."
    return "I fixed the issue with a minimal change. The tests that it is about should pass now."


def _edited(_job: Job, _results: str) -> str:
    return "I made the change that I think the issue asks for. I did not run the tests."


def _chat(job: Job, _results: str) -> str:
    return (
        "I found the cause of the issue and describe the whole change below. Please apply it yourself, "
        "as I did not edit any file.\n\n"
        f"```diff\n{job.gold_patch}\n```\n\n"
        "With this change the behaviour is as the issue asks."
    )


def typing(error: float, seed: int) -> Behaviour:
    """Fix the issue, and type the diff as well, sometimes wrongly.

    Args:
        error: the share of cases whose diff is damaged, from 0 to 1.
        seed: another seed damages other cases, in other ways.
    """

    def typed(job: Job, _results: str) -> str:
        chance = random.Random(f"{seed} {job.case_id}")  # noqa: S311 - a reproducible choice, no secret
        is_damaged = chance.random() < error
        damage = chance.choice([name for name in CONDITIONS if name != INTACT]) if is_damaged else INTACT
        return f"I fixed the issue. This is the whole change as a diff.\n\n{CONDITIONS[damage](job.gold_patch)}"

    about = "edits as oracle does, and types the diff into its final message; a share of the diffs is damaged"
    return Behaviour(about, in_order(gold_edit), typed)


oracle = Behaviour(
    "edits the tree as the gold patch does, through the claw's shell tool", in_order(gold_edit), _fixed
)
noop = Behaviour("answers at once and changes nothing")
wrong = Behaviour("makes a wrong edit at the place of the right one", in_order(wrong_edit), _edited)
partial = Behaviour("applies half of the gold patch's hunks", in_order(partial_edit), _edited)
chatty = Behaviour("answers with the gold patch as text and edits nothing", conclude=_chat)
typist = typing(error=0.0, seed=0)
slow = Behaviour("does what oracle does, streaming slowly", in_order(gold_edit), _fixed, pace=SLOW)
