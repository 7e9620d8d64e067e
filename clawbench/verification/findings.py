"""What a verification finds."""

from __future__ import annotations

from dataclasses import dataclass, field

_TEST = "tests_bench/test_resolved.py::test_resolved"
ANEW = "run the same pytest command once more, which makes it anew"
"""What to do about what is derived."""
COPY = "take it from a copy of the run that was not touched; without one, none of the run's numbers is attributed"
"""What to do about what can't be made again."""


def again(case: str) -> str:
    """What to do about a case whose files can't be relied on."""
    return f"run the case again: pytest with the run's options, --no-resume and '{_TEST}[{case}]'"


@dataclass(frozen=True)
class Fault:
    """Something that is not as it must be."""

    where: str
    """A case's id or a file's name."""
    what: str
    remedy: str

    def __str__(self) -> str:
        """The fault in a line."""
        return f"{self.where}: {self.what}. {self.remedy[:1].upper()}{self.remedy[1:]}."


@dataclass
class Verification:
    """All that was found."""

    run_id: str
    state: str = ""
    """See `RunStatus.state`."""
    planned: int = 0
    ended: int = 0
    """Planned cases that have an outcome which stays."""
    files: int = 0
    """Files that were compared with a digest."""
    lines: int = 0
    """Whole lines of the journal."""
    head: str = ""
    """Digest of the journal's last line: noted elsewhere, it vouches for all that the run holds."""
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What is worth knowing and wrong of nobody."""

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults

    def blame(self, where: str, what: str, remedy: str) -> None:
        """A fault was found."""
        self.faults.append(Fault(where, what, remedy))

    def conclusion(self) -> list[str]:
        """What it comes to, in a few lines."""
        verdict = "sound" if self.is_sound else f"{len(self.faults):,} faults"
        complete = "" if self.ended == self.planned else ": not complete"
        return [
            f"run {self.run_id} ({self.state}): {verdict}",
            f"{self.ended:,} of {self.planned:,} planned cases have a verdict{complete}; {self.files:,} files and "
            f"{self.lines:,} lines of the journal were checked",
            f"the journal ends with sha256:{self.head}",
        ]
