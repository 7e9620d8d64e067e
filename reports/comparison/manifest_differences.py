"""What differs between the manifests of two contenders, and whether their results may be compared.

Everything that a manifest records belongs to a *factor*: claw, model, budget, ... Two contenders are comparable if they
differ in the one factor under study, and in nothing else that can affect results. A fact that no rule below knows
counts as a factor of its own, so that a new setting confounds a comparison until somebody decides otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

FIRST_REQUEST = "first_request"
"""The facts of a case's first request. They are only compared if both cases have them: it is no setting of a case that it
ended before it asked the model, and older versions of the suite recorded none."""
HARMLESS = "harmless"
UNKNOWN = "unknown"
"""The factor of a contender without a manifest: nothing is known about how its results came about."""

FACTORS: dict[str, tuple[str, ...]] = {
    "claw": ("claw.name",),
    "version": ("claw.version", "claw.runtime_sha256"),
    "adapter": ("claw.adapter_sha256", "agent_files", "allowed_tools", "model.api"),
    "config": ("claw.config_sha256",),
    "prompt": ("prompt", "prompt_template_sha256", "claw.prompt", "claw.prompt_sha256"),
    "collection": ("settings.collect", "settings.adapter_parts"),
    "model": (
        "settings.model",
        "settings.served.name",
        "settings.served.context_window",
        "model.name",
        "model.context_window",
        "first_request.models",
        "first_request.served_models",
    ),
    "request": ("first_request.settings", "first_request.tools_sha256", "first_request.api"),
    "provider": ("settings.served.behind", "settings.served.apis", "settings.served"),
    "budget": (
        "settings.agent_timeout",
        "settings.exclude_waits",
        "settings.case_spend_limit",
        "settings.max_turns",
        "settings.llm_no",
    ),
    "network": ("settings.network",),
    "machine": ("settings.memory", "settings.pids_limit", "settings.platform", "engine.architecture"),
    "harness": ("settings.harness", "harness", "settings.eval_timeout", "settings.eval_network", "evaluation"),
    "dataset": ("settings.dataset", "settings.dataset_sha256", "rows", "repo", "base_commit", "row_sha256"),
    "image": ("source_image.id", "source_image.digests", "source_image.platform", "prepared_image.tag", "history"),
    "suite": ("clawbench",),
    HARMLESS: (
        "format",
        "run_id",
        "written",
        "sample",
        "claw.found_by",
        "source_image.name",
        "prepared_image.id",
        "evaluation_image",
        "engine.version",
        "engine.storage_driver",
        "gold",
        # its parts are compared: claw, adapter and config. It may have the date in it
        "first_request.system_sha256",
        # what clients name a session or a user by
        "first_request.settings.client_metadata",
        "first_request.settings.metadata",
        "first_request.settings.prompt_cache_key",
        "first_request.settings.safety_identifier",
        "first_request.settings.session_id",
        "first_request.settings.user",
    ),
}
"""The facts of each factor, as the beginnings of their paths; the longest beginning that fits counts."""

_BELONGS_TO = {
    "claw": ("version", "adapter", "config", "prompt", "request"),
    **dict.fromkeys(("version", "adapter", "config", "budget"), ("request",)),
    "model": ("provider", "request"),
    "provider": ("request",),
    "collection": ("prompt",),
}
"""Factors that cannot be the same, or need not be, if the first one differs: another claw has another adapter."""


_HAS_ASKED = f"{FIRST_REQUEST}.api"
"""A fact of every first request."""


class Role(StrEnum):
    """What a difference means for a comparison."""

    STUDIED = "studied"
    CONFOUNDING = "confounding"
    HARMLESS = "harmless"


@dataclass(frozen=True)
class Difference:
    """A fact that differs between two contenders."""

    factor: str
    path: str
    """Where the manifests have it."""
    first: Any
    second: Any
    role: Role
    instances: int | None = None
    """For how many instances it differs; None if it is the same fact in all cases."""


@dataclass(frozen=True)
class Comparability:
    """Whether two contenders can be compared, and why."""

    studied: tuple[str, ...]
    """The factors under study that differ; empty for a repetition of the same run."""
    confounding: tuple[str, ...]
    """Other factors that differ; comparable means that there are none."""
    differences: tuple[Difference, ...]


def comparability(
    first: Mapping[str, Mapping[str, Any]], second: Mapping[str, Mapping[str, Any]], vary: Iterable[str] = ()
) -> Comparability:
    """Compare the manifests of two contenders.

    Args:
        first: the baseline's facts by path, for each instance; an instance without a manifest has none.
        second: the other's.
        vary: the factors under study. Without any, it is the only factor that differs, if there is just one.
    """
    found = list(_differences(first, second))
    factors = list(dict.fromkeys(factor for factor, *_ in found if factor != HARMLESS))
    owned = {part for factor in factors for part in _BELONGS_TO.get(factor, ())}
    # a part of a factor is under study with it
    roots = [factor for factor in factors if factor not in owned and factor != UNKNOWN]
    asked = set(vary)
    studied = tuple(roots) if not asked and len(roots) == 1 else tuple(one for one in factors if one in asked)
    along = {part for factor in studied for part in _BELONGS_TO.get(factor, ())}
    confounding = tuple(one for one in factors if one not in studied and one not in along)

    def role(factor: str) -> Role:
        if factor == HARMLESS:
            return Role.HARMLESS
        return Role.CONFOUNDING if factor in confounding else Role.STUDIED

    told = (Difference(factor, path, a, b, role(factor), count) for factor, path, a, b, count in found)
    order = [Role.CONFOUNDING, Role.STUDIED, Role.HARMLESS]
    return Comparability(studied, confounding, tuple(sorted(told, key=lambda one: order.index(one.role))))


def facts_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest as facts by path: nested objects are taken apart, lists are one fact."""
    return dict(_flat(record, ""))


def factor_of(path: str) -> str:
    """The factor that a fact belongs to; a fact that no rule knows is a factor of its own, named by its path."""
    fitting = [
        (len(beginning), factor)
        for factor, beginnings in FACTORS.items()
        for beginning in beginnings
        if path == beginning or path.startswith(beginning + ".")
    ]
    return max(fitting)[1] if fitting else path


def _flat(value: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    for key, held in value.items():
        if isinstance(held, Mapping):
            yield from _flat(held, f"{path}{key}.")
        else:
            yield f"{path}{key}", held


def _differences(
    first: Mapping[str, Mapping[str, Any]], second: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, str, Any, Any, int | None]]:
    """The facts that differ: factor, path, the two values, and for how many instances if not for all alike."""
    shared = sorted(name for name in first.keys() & second.keys() if first[name] and second[name])
    if not shared:
        yield UNKNOWN, "manifest", bool(any(first.values())), bool(any(second.values())), None
        return
    paths = dict.fromkeys(path for name in shared for side in (first, second) for path in side[name])
    for path in paths:
        pairs = [
            (first[name].get(path), second[name].get(path))
            for name in shared
            if not path.startswith(FIRST_REQUEST) or (_HAS_ASKED in first[name] and _HAS_ASKED in second[name])
        ]
        different = [(a, b) for a, b in pairs if a != b]
        if different:
            a, b = different[0]
            is_same = all(pair == (a, b) for pair in pairs)
            yield factor_of(path), path, a, b, None if is_same else len(different)
