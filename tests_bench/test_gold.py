"""Whether the benchmark can be run here at all: `clawbench gold`, without any claw."""

from clawbench.preflight.gold_checks import GoldCheck


def test_gold(gold: GoldCheck) -> None:
    """The official harness resolves one instance's own fix, and not the absence of one."""
    gold.judge()
    assert gold.is_sound
