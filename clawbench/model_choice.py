"""What `--model` names, settled before anything is started: a scripted model, a provider's, a recording, or none.

Only the controller comes here. Workers, manifests and reports get `Served`, in which nothing is secret; the key
goes from its variable or file into the gateway's configuration, and nowhere else.
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
from adapters.configs import CONFIGS
from adapters.own import own_file
from adapters.registry import CLAWS, adapter
from clawbench.settings import Served
from gateway.config import GatewayConfig, Upstream
from gateway.metering.prices import PriceTable
from gateway.providers import Provider, load_providers, provider_of, read_key
from gateway.scripted import PREFIX, parse_model

REPLAY = "replay:"
OWN = "own"
"""What numbers are attributed to where a claw's own configuration says who answers."""
PRICES = CONFIGS / "prices.yaml"


class ModelError(ValueError):
    """A model can't be used as asked; the message says why and what to do."""


def providers_file() -> Path:
    """Where providers are declared; `CLAWBENCH_PROVIDERS` names another file than the suite's."""
    return Path(os.environ.get("CLAWBENCH_PROVIDERS") or CONFIGS / "providers.yaml")


@dataclass(frozen=True)
class Choice:
    """A model, and all that the gateway must know to serve it."""

    model: str
    """What numbers are attributed to."""
    served: Served | None = None
    upstream: Upstream | None = None
    prices: PriceTable | None = None
    recordings: Path | None = None
    """The folder that its answers are read from."""

    def gateway_config(
        self, spend_limit: Decimal | None, case_spend_limit: Decimal | None, spent_before: Decimal
    ) -> GatewayConfig:
        """What the run's gateway is told at its start.

        Args:
            spend_limit: US dollars, for the run.
            case_spend_limit: US dollars, for each case.
            spent_before: US dollars, by earlier commands under the same run id.
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
        model: as `--model` gave it; "" where it was not given, which only the gateway's absence allows.
        gateway: whether there is one. Without it a name means nothing to us, and is the claw's affair.

    Raises:
        ModelError, ProviderConfigError, PriceError: nobody answers to that name, or the provider's key can't be
            used; the message says what to do.
    """
    if not gateway:
        if model.startswith((PREFIX, REPLAY)):
            raise ModelError(f"--gateway off: {model} is answered by the gateway")
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
    made = ("responses",) if "responses_to_chat" in provider.transforms else ()
    served = Served(
        name=name,
        apis=(*provider.apis, *(api for api in made if api not in provider.apis)),
        context_window=provider.window_of(name),
        behind=_facts(provider, prices),
    )
    upstream = Upstream(provider=provider, model=name, key=key)
    return Choice(f"{provider.name}/{name}", served, upstream, prices)


def _facts(provider: Provider, prices: PriceTable | None) -> dict[str, Any]:
    """A provider as manifests name it: what its answers depend on, and of its key only where it was found."""
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
        raise ModelError(f"--model {REPLAY}{folder}: there is no such folder")
    folder = folder.resolve()
    return Choice(f"{REPLAY}{folder.name}", recordings=folder)


def check_limits(choice: Choice, limits: Iterable[str]) -> None:
    """Refuse limits in dollars for a model whose price nobody knows, of what it reads or of what it writes.

    Args:
        choice: of the model.
        limits: the options that set one.

    Raises:
        ModelError: there is one, and no price.
    """
    options = " and ".join(limits)
    if not options or (choice.prices is not None and choice.prices.is_enough_for_limits):
        return
    if choice.upstream is None:
        raise ModelError(f"{options}: {choice.model} costs nothing that the gateway could count")
    raise ModelError(
        f"{options}: no price is known for {choice.model}, so nothing could be counted against it. Give the "
        f"model's prices, of input and output at the least, to its provider in {providers_file()}, or in {PRICES} "
        "(docs/providers.md)"
    )


def check_claws(choice: Choice, claws: Iterable[str]) -> None:
    """Refuse claws that can't talk to the model.

    Args:
        choice: of the model.
        claws: those that cases are made for.

    Raises:
        ModelError: some can't; the message names each, with what it can.
        BadOptionError: the gateway is off, and a claw's user has no configuration of it.
    """
    if choice.recordings is not None:
        return  # each case goes on in the format that it was recorded in
    found = {name: adapter(name) for name in claws}
    if choice.served is not None and not choice.served.apis:
        lacking = [name for name, claw in found.items() if not has_own_config(claw)]
        if lacking:
            raise ModelError(f"--gateway off: {', '.join(lacking)} can't be run on a configuration of its own")
        for name in set(found) & set(CLAWS):
            own_file(found[name].config_file())
        return
    spoken = set(choice.served.apis if choice.served is not None else ("chat",))
    mute = [f"{name} speaks {', '.join(apis_of(claw))}" for name, claw in found.items()]
    mute = [line for line, claw in zip(mute, found.values(), strict=True) if not spoken & set(apis_of(claw))]
    if mute:
        raise ModelError(
            f"{choice.model} is answered in {', '.join(sorted(spoken))}, but {'; '.join(mute)}. Leave those claws "
            "out (-k), or give the provider a format that they speak"
        )
