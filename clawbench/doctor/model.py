"""Whether the model answers: under this key, address and name, in the formats that the claws speak."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from email.utils import parsedate_to_datetime
from pathlib import Path
from urllib.parse import urlsplit

import requests

from adapters.base import apis_of
from adapters.registry import adapter
from clawbench.doctor.asked import Asked
from clawbench.doctor.findings import Finding, fault, ok, warning
from clawbench.model_choice import Choice, providers_file
from gateway.client import Gateway, GatewayClient, GatewayError
from gateway.models import Api, CaseCounts, CaseSpec
from gateway.probe import ask

PATIENCE = 60.0
"""Seconds without a byte after which the model does not answer."""
REQUESTS = "checks"
"""The folder of a run that has the logs of the checks' requests: what they cost is the run's."""
_SKEW, _MUCH_SKEW = 30.0, 300.0
"""Seconds by which our clock may differ from others': records would be wrong; tokens and certificates refused."""


def check(asked: Asked, logs: Path | None = None) -> Iterator[Finding]:
    """Look at the model.

    Args:
        asked: the run that is meant.
        logs: the folder for the logs of requests; None: nobody asks what they cost.
    """
    choice = asked.choice
    if choice is None:
        return
    if asked.settings.gateway == "off":
        yield ok("model", f"{choice.model}: whatever the claws' own configuration names; it is not asked")
        return
    if choice.upstream is None:
        yield from _own_gateway(choice.model)
        return
    provider = choice.upstream.provider
    where = provider.key_env or (provider.key_file and str(provider.key_file))
    yield ok("key", f"in {where}" if where else f"{provider.name} needs none")
    if choice.prices is None:
        advice = f"give its prices to the provider in {providers_file()}, and --spend-limit can be kept"
        yield warning("price", f"not known of {choice.model}: no cost can be told", advice)
    else:
        yield ok("price", f"by {choice.prices.manifest()['source']}")
    if not asked.request or asked.offline:
        yield warning("model", f"{choice.model} is not asked", "leave out --no-request and --offline")
        return
    with tempfile.TemporaryDirectory(prefix="clawbench-checks-") as scratch:
        yield from _requests(asked, choice, logs or Path(scratch), Path(scratch))


def _own_gateway(model: str) -> Iterator[Finding]:
    """The gateway alone can be tried where what answers is in it, or recorded: its process, its sockets."""
    with tempfile.TemporaryDirectory(prefix="clawbench-checks-") as scratch:
        try:
            with Gateway.start(Path(scratch)) as gateway:
                GatewayClient(gateway.control).totals()
        except GatewayError as error:
            yield fault("model", f"the gateway that serves {model} does not start: {error}", "see what it says")
            return
    yield ok("model", f"{model}, by the gateway itself: free of cost")


def _requests(asked: Asked, choice: Choice, logs: Path, scratch: Path) -> Iterator[Finding]:
    """Send one request in each format that the claws speak, through a gateway like the run's."""
    served = asked.settings.endpoint
    formats: dict[str, list[str]] = {}
    for name in asked.installed:
        formats.setdefault(served.api_for(apis_of(adapter(name))), []).append(name)
    try:
        with Gateway.start(scratch, _impatient(choice).gateway_config(None, None, Decimal(0))) as gateway:
            client = GatewayClient(gateway.control)
            for api in formats or served.apis[:1]:
                log = logs / api / "requests.jsonl"
                spec = CaseSpec(case_id=f"check-{api}", model=choice.model, request_log=log.absolute())
                began = time.monotonic()
                ask(client.open_case(spec), api, served.name, PATIENCE + 5)  # type: ignore[arg-type]
                counts = client.close_case(spec.case_id)
                seconds = time.monotonic() - began
                yield _told(choice, api, counts, seconds)  # type: ignore[arg-type]
    except (GatewayError, LookupError) as error:
        yield fault("model", f"the gateway does not serve it: {error}", "see what it says")


def _impatient(choice: Choice) -> Choice:
    """The same model, asked once and not waited for as long as in a run."""
    assert choice.upstream is not None  # noqa: S101 - who is asked is a provider's
    provider = choice.upstream.provider
    hasty = provider.model_copy(update={"retries": 0, "timeout": min(provider.timeout, PATIENCE)})
    return replace(choice, upstream=choice.upstream.model_copy(update={"provider": hasty}))


_SEE_TO = {
    "unauthorized": "see to the key in {key}, and to the account behind it",
    "rate_limited": "wait, or have the provider's rate_limit declared in {file}: the gateway keeps to it",
    "server_error": "see to the model's name and the provider's address in {file}; a 5xx is the provider's own",
    "malformed": "what answers at {url} speaks something else: see to base_url and apis in {file}",
    "dropped": "see to base_url in {file}, and to this machine's way there (HTTPS_PROXY)",
    "hung": "try again later, or see to base_url in {file}",
    "refused": "see to apis and transforms of the provider in {file}: claws would be refused as well",
}


def _told(choice: Choice, api: Api, counts: CaseCounts, seconds: float) -> Finding:
    """What came of a request."""
    assert choice.upstream is not None  # noqa: S101 - who was asked is a provider's
    provider, ending = choice.upstream.provider, counts.last_ending or "hung"
    check = f"model ({api})"
    if ending in ("ok", "empty"):
        cost = f", ${counts.cost.priced:.5f}" if counts.cost.priced is not None else ""
        if counts.unknown_usage:
            return warning(
                check,
                f"{choice.model} answers, and tells no usage",
                "tokens and cost will be estimates; some providers tell with the transform include_usage",
            )
        return ok(check, f"{choice.model} answers in {seconds:.1f} s, with {counts.tokens.known} tokens{cost}")
    key = provider.key_env or str(provider.key_file or "no variable")
    advice = _SEE_TO.get(ending, "try again").format(key=key, file=providers_file(), url=provider.base_url)
    said = " ".join(counts.last_error.split()) or ending
    make = warning if ending == "rate_limited" else fault
    return make(check, f"{choice.model}: {said}", advice)


def clock(asked: Asked, registry: str | None) -> Iterator[Finding]:
    """Whether our clock is that of the world, by who is asked anyway: the provider, else the images' registry.

    Args:
        asked: the run that is meant.
        registry: its address, where there is one to ask.
    """
    upstream = asked.choice.upstream if asked.choice is not None else None
    url = upstream.provider.base_url if upstream is not None else registry
    if asked.offline or url is None:
        return
    try:
        began = time.time()
        # nobody's credentials go along, those of ~/.netrc included
        told = requests.head(url, auth=lambda request: request, timeout=10, allow_redirects=False)
        ended = time.time()
        date = parsedate_to_datetime(told.headers["Date"]).timestamp()
    except (requests.RequestException, KeyError, ValueError):
        host = urlsplit(url).netloc
        yield warning("clock", f"{host} does not tell the time", "see that this machine keeps its own by NTP")
        return
    ahead = max(began - date - 1, 0.0) or min(ended - date, 0.0)
    if abs(ahead) <= _SKEW:
        yield ok("clock", "as the provider's" if upstream is not None else "as the registry's")
        return
    found = f"{abs(ahead):.0f} s {'ahead' if ahead > 0 else 'behind'}: times in records would be wrong"
    make = fault if abs(ahead) > _MUCH_SKEW else warning
    yield make("clock", found, "set it by NTP: certificates and tokens hold for a time only")
