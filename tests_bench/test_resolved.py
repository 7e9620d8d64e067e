"""The benchmark: whether the official SWE-bench harness resolves what the claw left in the repository."""

from clawbench.case import Case
from clawbench.solving import Attempt


def test_resolved(case: Case, attempt: Attempt | None) -> None:
    """One claw on one instance, in a fresh container that holds the instance's own past and no way out."""
    if attempt is not None:
        attempt.run_claw()
        attempt.export()
    case.judge()
    assert case.is_resolved
