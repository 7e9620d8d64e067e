"""The benchmark: does the official SWE-bench harness resolve what the claw left in the repository?"""

from clawbench.run.agent_run import Claw, Container
from clawbench.run.case import Case


def test_resolved(case: Case, container: Container, adapter: Claw) -> None:
    """One claw on one instance, in a fresh container that holds the instance's own past and no way out."""
    adapter.run(container, case.task)
    patch = container.export()
    assert case.judge(patch).resolved
