"""The settings of a run, made from the command-line options."""

from __future__ import annotations

import re
import time
from pathlib import Path
from secrets import token_hex

import pytest
from pydantic import ValidationError

from clawbench.pytest_plugin.options import DEFAULT_MODEL
from clawbench.pytest_plugin.selection import predictions, selection
from clawbench.pytest_plugin.workers import agents_asked_for, cores
from clawbench.run.made_elsewhere import UNKNOWN_MODEL
from clawbench.run.model_choice import Choice, check_claws, check_limits, choose
from clawbench.run.settings import Collect, Settings, way_in_names
from evaluation.collection import AdapterPart
from evaluation.lists import DATASET, DATASETS
from workspace.container import Limits


def settings_from(config: pytest.Config) -> tuple[Settings, Choice]:
    """The run's settings, and its model with everything that the gateway needs.

    Raises:
        pytest.UsageError: an option or environment variable is invalid; the message says which and why.
    """
    option = config.option
    has_gateway = option.network != "own"
    try:
        predicted = predictions(config)
        if predicted:
            _refuse_with_predictions(config)
            choice = Choice(UNKNOWN_MODEL)
        else:
            choice = choose(option.model or (DEFAULT_MODEL if has_gateway else ""), gateway=has_gateway)
        if not has_gateway:
            _refuse_without_gateway(config)
        if option.record and choice.recordings is not None:
            raise ValueError(f"--record: {choice.model} already answers from a recording")
        check_limits(choice, (name for name in _SPENDING if getattr(option, _dest(name)) is not None))
        check_claws(choice, selection(config).claws)
        limits = Limits.from_environment()
        settings = Settings(
            run_id=option.run_id or _default_run_id(config, choice),
            artifacts=Path(option.artifacts).absolute(),
            model=choice.model,
            served=choice.served,
            collect=_collect(config),
            adapter_parts=option.adapter_parts,
            agent_timeout=option.agent_timeout,
            exclude_waits=option.exclude_waits,
            spend_limit=option.spend_limit,
            case_spend_limit=option.case_spend_limit,
            samples=option.samples,
            agents=agents_asked_for(config),
            eval_slots=cores() if option.eval_slots is None else option.eval_slots,
            infra_retries=option.infra_retries,
            outage_limit=option.outage_limit,
            max_turns=option.max_turns,
            llm_no=option.llm_no,
            eval_timeout=option.eval_timeout,
            eval_network=option.eval_network,
            resume=not option.no_resume,
            keep_container=option.keep_container,
            network=option.network,
            record=option.record,
            recordings=choice.recordings,
            dataset=option.dataset,
            revisions=revisions(option.dataset_revision),
            platform=option.platform,
            image_policy=option.image_policy,
            disk_reserve=option.disk_reserve,
            predictions={name: made.predictions.sha256 for name, made in predicted.items()},
            pids_limit=limits.pids,
            memory=limits.memory,
            skip_checks=option.skip_checks,
        )
    except ValidationError as error:
        faults = [f"--{fault['loc'][0]}: {fault['msg']}".replace("_", "-") for fault in error.errors()]
        raise pytest.UsageError("; ".join(faults)) from error
    except ValueError as error:
        raise pytest.UsageError(str(error)) from error
    return settings, choice


_SPENDING = ("--spend-limit", "--case-spend-limit")
_OF_THE_GATEWAY = (*_SPENDING, "--exclude-waits", "--record")


def _dest(option: str) -> str:
    return option.removeprefix("--").replace("-", "_")


def _refuse_without_gateway(config: pytest.Config) -> None:
    asked = [name for name in _OF_THE_GATEWAY if getattr(config.option, _dest(name))]
    if asked:
        raise ValueError(f"{' and '.join(asked)}: only with the gateway, and --network own runs without it")


def _refuse_with_predictions(config: pytest.Config) -> None:
    """Refuse the options of an agent's work, which was done elsewhere (raises ValueError)."""
    option = config.option
    asked = [name for name in ("--model", "--gold", *_OF_THE_GATEWAY) if getattr(option, _dest(name))]
    unusual = {
        "--samples": option.samples != 1,
        "--collect": option.collect != "workspace",
        "--adapter-parts": option.adapter_parts is not None,
        "--network": option.network != "gateway",
    }
    asked += [name for name, is_asked in unusual.items() if is_asked]
    if asked:
        raise ValueError(f"{' and '.join(asked)}: not with --predictions, which were made elsewhere")


def _collect(config: pytest.Config) -> Collect:
    """How the patch is collected (raises ValueError)."""
    collect: Collect = config.option.collect
    parts = config.option.adapter_parts
    if parts is None:
        return collect
    if collect != "workspace":
        raise ValueError(f"--collect {collect}: not with --adapter-parts, whose part `export` says the same")
    return "workspace" if AdapterPart.EXPORT in parts else "message-fuzzy"


def revisions(given: list[str]) -> dict[str, str]:
    """The values of `--dataset-revision` by set (raises ValueError)."""
    names = [*(name for name in DATASETS if name != "demo"), DATASET]
    found: dict[str, str] = {}
    for word in given:
        name, _, revision = word.rpartition("=")
        if not revision or (name and name not in names):
            raise ValueError(
                f"--dataset-revision {word}: write [SET=]REVISION, where SET is one of {', '.join(names)}"
            )
        found |= dict.fromkeys([name] if name else names, revision)
    return found


def _default_run_id(config: pytest.Config, choice: Choice) -> str:
    # the random part keeps two runs apart that start in the same second
    moment = f"{time.strftime('%Y%m%d-%H%M%S')}-{token_hex(2)}"
    if config.option.gold:
        return f"gold-{moment}"
    if config.option.predictions:
        return f"judge-{'-'.join(predictions(config))}"[: 119 - len(moment)] + f"-{moment}"
    claws = "-".join(selection(config).claws) or "none"
    model = re.sub(r"[^A-Za-z0-9._-]", "-", choice.model)
    way = way_in_names(config.option.collect, config.option.adapter_parts)
    return f"{claws}{way}-{model}"[: 119 - len(moment)] + f"-{moment}"
