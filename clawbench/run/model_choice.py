"""Resolves `--model` before anything is started: to a scripted model, a provider's model, a recording, or none.

Only the controller uses this. Workers, manifests and reports get `Served`, which contains no secret; the key goes from
its variable or file into the gateway's configuration, and nowhere else.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from adapters.base import apis_of, has_own_config
from adapters.registry import CLAWS, adapter
from adapters.user_config import CONFIGS, own_file
from clawbench.run.settings import Served
from common.errors import ClawbenchError
from gateway.behaviours.behaviour_table import PREFIX, parse_model
from gateway.config import GatewayConfig, Upstream
from gateway.metering.prices import PriceTable
from gateway.providers import Provider, load_providers, provider_of, read_key

REPLAY = "replay:"
OWN = "own"
"""The model's name in records if a claw's own configuration chooses the model."""
PRICES = CONFIGS / "prices.yaml"


class ModelError(ClawbenchError, ValueError):
    """A model can't be used as requested; the message says why and what to do."""


def providers_file() -> Path:
    """The file that declares providers: the one that `CLAWBENCH_PROVIDERS` names, or the suite's own."""
    return Path(os.environ.get("CLAWBENCH_PROVIDERS") or CONFIGS / "providers.yaml")


@dataclass(frozen=True)
class Choice:
    """A model, and everything that the gateway needs to serve it."""

    model: str
    """The model's name in records."""
    served: Served | None = None
    upstream: Upstream | None = None
    prices: PriceTable | None = None
    recordings: Path | None = None
    """The folder from which its answers are read."""

    def gateway_config(
        self, spend_limit: Decimal | None, case_spend_limit: Decimal | None, spent_before: Decimal
    ) -> GatewayConfig:
        """The configuration of the run's gateway.

        Args:
            spend_limit: US dollars, for the run.
            case_spend_limit: US dollars, for each case.
            spent_before: US dollars that earlier commands with the same run id have spent.
        """
        return GatewayConfig(
            upstream=self.upstream,
            prices=self.prices,
            spend_limit=spend_limit,
            case_spend_limit=case_spend_limit,
            spent_before=spent_before,
        )


def choose(model: str, *, gateway: bool) -> Choice:
    """Find what a model's name stands for.

    Args:
        model: the value of `--model`; "" if it was not given, which is only allowed without a gateway.
        gateway: whether the run has one. Without a gateway, the name is passed to the claw unchecked.

    Raises:
        ModelError, ProviderConfigError: no provider or model has that name, or the provider's key can't
            be used; the message says what to do.
    """
    if not gateway:
        if model.startswith((PREFIX, REPLAY)):
            raise ModelError(f"--network own: {model} is answered by the gateway")
        return Choice(f"{OWN}:{model}" if model else OWN, Served(name=model, apis=()))
    if model.startswith(PREFIX):
        parse_model(model)
        return Choice(model)
    if model.startswith(REPLAY):
        return _replayed(Path(model.removeprefix(REPLAY)))
    if "/" not in model:
        raise ModelError(
            f"--model {model!r} names no provider: write <provider>/<model> (`clawbench providers` lists them), "
            f"{PREFIX}<name> (`pytest --help` lists them) or {REPLAY}<folder>"
        )
    provider, name = provider_of(model, load_providers(providers_file()))
    return from_provider(provider, name, read_key(provider))


def from_provider(provider: Provider, name: str, key: SecretStr | None) -> Choice:
    """The choice of a provider's model, with its prices."""
    prices = PriceTable.find(provider, name, PRICES)
    served = Served(
        name=name,
        apis=provider.apis,
        context_window=provider.window_of(name),
        behind=_facts(provider, prices),
    )
    upstream = Upstream(provider=provider, model=name, key=key)
    return Choice(f"{provider.name}/{name}", served, upstream, prices)


def _facts(provider: Provider, prices: PriceTable | None) -> dict[str, Any]:
    """A provider as it appears in manifests: everything its answers depend on, but only the source of its key."""
    return {
        "provider": provider.name,
        "base_url": provider.base_url,
        "apis": list(provider.apis),
        "auth": provider.auth,
        "key": provider.key_env or (provider.key_file and "a file") or "none",
        "headers": sorted(provider.headers),
        "transforms": list(provider.transforms),
        "rate_limit": provider.rate_limit.model_dump(),
        "timeout": provider.timeout,
        "retries": provider.retries,
        "prices": prices.manifest() if prices is not None else None,
    }


def _replayed(folder: Path) -> Choice:
    if not folder.is_dir() or folder == Path():
        raise ModelError(f"--model {REPLAY}{folder}: the folder does not exist")
    folder = folder.resolve()
    return Choice(f"{REPLAY}{folder.name}", recordings=folder)


def check_limits(choice: Choice, limits: Iterable[str]) -> None:
    """Refuse spend limits for a model without a known price of input or of output.

    Args:
        choice: the model.
        limits: the options that set a limit.

    Raises:
        ModelError: a limit is set, and a price is missing.
    """
    options = " and ".join(limits)
    if not options or (choice.prices is not None and choice.prices.is_enough_for_limits):
        return
    if choice.upstream is None:
        raise ModelError(f"{options}: the gateway counts no costs for {choice.model}")
    raise ModelError(
        f"{options}: no price is known for {choice.model}, so its costs can't be limited. Declare the model's "
        f"prices, of input and output at least, at its provider in {providers_file()}, or in {PRICES} "
        "(docs/providers.md)"
    )


def check_claws(choice: Choice, claws: Iterable[str]) -> None:
    """Refuse claws that can't use the model.

    Args:
        choice: the model.
        claws: the claws that have cases.

    Raises:
        ModelError: some speak none of the model's formats, or can't run without a gateway; the message names them.
        BadOptionError: the run has no gateway, and the user has no configuration of a claw.
    """
    if choice.recordings is not None:
        return  # each case uses the format in which it was recorded
    found = {name: adapter(name) for name in claws}
    if choice.served is not None and not choice.served.apis:
        lacking = [name for name, claw in found.items() if not has_own_config(claw)]
        if lacking:
            raise ModelError(f"--network own: {', '.join(lacking)} can't run with the user's own configuration")
        for name in set(found) & set(CLAWS):
            own_file(found[name].config_file())
        return
    spoken = set(choice.served.apis if choice.served is not None else ("chat",))
    mute = [f"{name} speaks {', '.join(apis_of(claw))}" for name, claw in found.items()]
    mute = [line for line, claw in zip(mute, found.values(), strict=True) if not spoken & set(apis_of(claw))]
    if mute:
        raise ModelError(
            f"{choice.model} is served as {', '.join(sorted(spoken))}, but {'; '.join(mute)}. Leave those claws "
            "out (-k), or declare a format that they speak at the provider"
        )
