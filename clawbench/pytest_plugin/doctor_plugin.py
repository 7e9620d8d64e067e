"""`--doctor` and `--estimate`, which replace a run, and the checks before a real run.

`--doctor` goes through configuration and collection as a run would, so it has the run's options and selection. Then
it prints the table. It creates no run folder, starts no workers and leaves nothing behind.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from adapters.base import BadOptionError
from clawbench.controller.run_session import RunSession
from clawbench.preflight.checks import quick, whole
from clawbench.preflight.costs import estimate_lines
from clawbench.preflight.findings import WIDTH, Finding, State, fault, faults, table_lines
from clawbench.preflight.model_checks import REQUESTS
from clawbench.preflight.planned_run import PlannedRun
from clawbench.pytest_plugin import selection
from clawbench.pytest_plugin.options import DEFAULT_MODEL
from clawbench.pytest_plugin.run_settings import settings_from
from clawbench.pytest_plugin.workers import described
from clawbench.run.model_choice import Choice, ModelError
from clawbench.run.settings import Settings
from common.errors import NotReadyError
from evaluation.lists import by_id
from gateway.providers import ProviderConfigError
from records.case_id import CaseId

_OF_THE_MODEL = (ModelError, ProviderConfigError, BadOptionError)
"""Errors about `--model` and its options; the other checks are still made after them."""
_MEANT = pytest.StashKey[tuple[Settings, Choice | None, list[Finding]]]()


def configure(config: pytest.Config) -> None:
    """Compute the settings of the planned run, and make pytest only collect.

    Raises:
        pytest.UsageError: an option makes no sense.
    """
    findings = []
    try:
        settings, choice = settings_from(config)
    except pytest.UsageError as error:
        if not isinstance(error.__cause__, _OF_THE_MODEL):
            raise
        findings = [fault("model", str(error), "see `clawbench providers` and docs/providers.md")]
        option, asked = config.option, config.option.model
        option.model, option.spend_limit, option.case_spend_limit = DEFAULT_MODEL, None, None
        option.network, option.record = "gateway", False
        settings, choice = settings_from(config)[0], None
        if option.estimate:  # it needs no key
            settings = settings.model_copy(update={"model": asked})
    config.stash[_MEANT] = settings, choice, findings
    config.option.dist, config.option.tx, config.option.numprocesses = "no", [], None
    config.option.verbose = -2  # print nothing but the table


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Print the table instead of running anything."""
    config = session.config
    if session.testsfailed:
        return None
    cases = [name for item in session.items if (name := selection.case_of(item.nodeid))]
    if not cases:
        return None
    settings, choice, findings = config.stash[_MEANT]
    with tempfile.TemporaryDirectory(prefix="clawbench-rows-") as rows:
        planned = _planned_run(config, settings, choice, cases=cases, rows=Path(rows))
        if config.option.estimate:
            for line in estimate_lines(planned):
                config.get_terminal_writer().line(line)
            return True
        findings = [*findings, *whole(planned)]
    terminal = config.get_terminal_writer()
    for line in [_summary_of(planned), "", *table_lines(findings, max(WIDTH, terminal.fullwidth)), ""]:
        terminal.line(line)
    counts = Counter(finding.state for finding in findings)
    told = ", ".join(
        f"{counts[state]} {word}{'s' * (counts[state] != 1)}"
        for state, word in ((State.FAULT, "fault"), (State.WARNING, "warning"))
    )
    terminal.line(f"{told}: the run would not begin" if counts[State.FAULT] else f"{told}: the run can begin")
    session.testsfailed = counts[State.FAULT]
    return True


def check_before_run(
    config: pytest.Config, session: RunSession, cases: Sequence[CaseId], write: Callable[[str], None]
) -> None:
    """Check what a real run needs, before anything is spent.

    A run is real if it costs money or has real instances. Other runs are not checked.

    Args:
        config: of the controller.
        session: the run, after its rows were read.
        cases: all that are selected.
        write: prints a line.

    Raises:
        NotReadyError: a check found a fault; the message has its lines of the table.
    """
    settings = session.settings
    is_real = settings.has_price or any(not by_id()[case.instance_id].embedded for case in cases)
    left = [case for case in cases if str(case) not in session.order.finished]
    if settings.skip_checks or not is_real or not left:
        return
    planned = _planned_run(
        config,
        settings,
        session.choice,
        cases=left,
        rows=session.context().rows,
        claws=list(dict.fromkeys(case.claw for case in left)),
    )
    findings = list(quick(planned, session.run.path / REQUESTS))
    bad = faults(findings)
    if bad:
        lines = [
            "nothing was run: `clawbench doctor` shows all checks, --skip-checks runs without them",
            *table_lines(bad),
        ]
        raise NotReadyError("\n".join(lines))
    warned = [finding for finding in findings if finding.state is State.WARNING]
    session.run.journal.write(
        "checked", checks=len(findings), warnings=[f"{one.check}: {one.found}" for one in warned]
    )
    for line in [*(table_lines(warned) if warned else []), *estimate_lines(planned)]:
        write(line)


def _planned_run(
    config: pytest.Config,
    settings: Settings,
    choice: Choice | None,
    *,
    cases: Sequence[CaseId],
    rows: Path,
    claws: Sequence[str] | None = None,
) -> PlannedRun:
    option = config.option
    return PlannedRun(
        settings=settings,
        choice=choice,
        claws=selection.selection(config).claws if claws is None else claws,
        cases=cases,
        rows=rows,
        offline=option.offline,
        request=not option.no_request,
        sample=option.check_images,
    )


def _summary_of(planned: PlannedRun) -> str:
    parts = [
        f"{len(planned.cases)} cases of {len(planned.instances)} instances",
        f"by {', '.join(planned.claws) or 'no claw'}",
        described(planned.settings),
        f"model {planned.choice.model}" if planned.choice is not None else "no model",
    ]
    return ", ".join(parts)
