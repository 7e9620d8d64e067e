"""The doctor's part of pytest: `--doctor` in place of a run, and the checks before a real one.

`--doctor` goes through configuration and collection like the run that is meant, so that it has that run's options
and selection. Then it prints the table. It takes no run id, starts no workers and leaves nothing behind.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from adapters.base import BadOptionError
from clawbench import selection
from clawbench.doctor.asked import Asked
from clawbench.doctor.checks import quick, whole
from clawbench.doctor.findings import WIDTH, Finding, State, fault, faults, table_lines
from clawbench.doctor.model import REQUESTS
from clawbench.model_choice import Choice, ModelError
from clawbench.names import CaseName
from clawbench.options import DEFAULT_MODEL, settings_from
from clawbench.scheduling.workers import described
from clawbench.session import Session, bench_from
from clawbench.settings import Settings
from gateway.metering.prices import PriceError
from gateway.providers import ProviderConfigError

_OF_THE_MODEL = (ModelError, PriceError, ProviderConfigError, BadOptionError)
"""Why options can't become settings, where the rest of the checks can be made all the same."""
_MEANT = pytest.StashKey[tuple[Settings, Choice | None, list[Finding]]]()


def is_meant(config: pytest.Config) -> bool:
    """Whether the command asks for the table alone."""
    return bool(config.option.doctor)


def configure(config: pytest.Config) -> None:
    """Settle what the run would be, and keep pytest from anything but collecting.

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
        option = config.option
        option.model, option.spend_limit, option.case_spend_limit = DEFAULT_MODEL, None, None
        option.gateway, option.record = "on", False
        settings, choice = settings_from(config)[0], None
    config.stash[_MEANT] = settings, choice, findings
    config.option.dist, config.option.tx, config.option.numprocesses = "no", [], None
    config.option.verbose = -2  # the table is all that there is to be told


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Print the table in place of running anything."""
    config = session.config
    if not is_meant(config) or session.testsfailed:
        return None
    cases = [name for item in session.items if (name := selection.case_of(item.nodeid))]
    if not cases:
        return None
    settings, choice, findings = config.stash[_MEANT]
    with tempfile.TemporaryDirectory(prefix="clawbench-rows-") as rows:
        asked = _asked(config, settings, choice, cases=cases, rows=Path(rows))
        findings = [*findings, *whole(asked)]
    terminal = config.get_terminal_writer()
    for line in [_summary_of(asked), "", *table_lines(findings, max(WIDTH, terminal.fullwidth)), ""]:
        terminal.line(line)
    counts = Counter(finding.state for finding in findings)
    told = ", ".join(
        f"{counts[state]} {word}{'s' * (counts[state] != 1)}"
        for state, word in ((State.FAULT, "fault"), (State.WARNING, "warning"))
    )
    terminal.line(f"{told}: the run would not begin" if counts[State.FAULT] else f"{told}: the run can begin")
    session.testsfailed = counts[State.FAULT]
    return True


def before(
    config: pytest.Config, session: Session, cases: Sequence[CaseName], tell: Callable[[str], None]
) -> None:
    """Look at what a real run needs, before anything is spent; another's start takes no longer for it.

    Args:
        config: of the controller.
        session: the run, whose rows are taken.
        cases: all that are selected.
        tell: prints a line.

    Raises:
        pytest.UsageError: something is at fault; the message has the table's lines of that.
    """
    settings = session.settings
    if settings.skip_checks or not (settings.has_price or any(not name.listed.embedded for name in cases)):
        return
    left = [name for name in cases if name.case_id not in session.order.finished]
    if not left:
        return
    claws = list(dict.fromkeys(name.claw for name in left))
    asked = _asked(
        config,
        settings,
        session.choice,
        cases=left,
        rows=bench_from(session.handed_over(), "main").rows,
        claws=claws,
    )
    findings = list(quick(asked, session.run.path / REQUESTS))
    bad = faults(findings)
    if bad:
        lines = [
            "nothing was run: `clawbench doctor` says more, --skip-checks goes on all the same",
            *table_lines(bad),
        ]
        raise pytest.UsageError("\n".join(lines))
    warned = [finding for finding in findings if finding.state is State.WARNING]
    session.run.journal.write(
        "checked", checks=len(findings), warnings=[f"{one.check}: {one.found}" for one in warned]
    )
    for line in table_lines(warned) if warned else []:
        tell(line)


def _asked(
    config: pytest.Config,
    settings: Settings,
    choice: Choice | None,
    *,
    cases: Sequence[CaseName],
    rows: Path,
    claws: Sequence[str] | None = None,
) -> Asked:
    option = config.option
    return Asked(
        settings=settings,
        choice=choice,
        claws=selection.wanted_claws(config) if claws is None else claws,
        cases=cases,
        rows=rows,
        offline=option.offline,
        request=not option.no_request,
        sample=option.check_images,
    )


def _summary_of(asked: Asked) -> str:
    parts = [
        f"{len(asked.cases)} cases of {len(asked.instances)} instances",
        f"by {', '.join(asked.claws) or 'no claw'}",
        described(asked.settings),
        f"model {asked.choice.model}" if asked.choice is not None else "no model",
    ]
    return ", ".join(parts)
