"""Whether the model answers: each claw's wire format is tried with one small request through a gateway like the run's.

What a request costs is part of the run's cost if a run follows.
"""

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
from clawbench.preflight.findings import Finding, fault, ok, warning
from clawbench.preflight.planned_run import PlannedRun
from clawbench.run.model_choice import Choice, providers_file
from gateway.case_models import Api, CaseCounts, CaseSpec
from gateway.client import Gateway, GatewayClient, GatewayError
from gateway.probe import ask
from gateway.providers import Provider

PATIENCE = 60.0
"""Seconds without data after which the model counts as not answering."""
REQUESTS = "checks"
"""A run's folder for the logs of the checks' requests."""
_SKEW, _MUCH_SKEW = 30.0, 300.0
"""Seconds by which clocks may differ: beyond the first, records are wrong; beyond the second, tokens and
certificates are refused."""

_TO_DO = {
    "unauthorized": "check the key in {key}, and the account behind it",
    "rate_limited": "wait, or declare the provider's rate_limit in {file}: the gateway keeps to it",
    "server_error": "check the model's name and the provider's address in {file}; a 5xx is the provider's own",
    "malformed": "what answers at {url} uses another format: check base_url and apis in {file}",
    "dropped": "check base_url in {file}, and this machine's way there (HTTPS_PROXY)",
    "hung": "try again later, or check base_url in {file}",
    "refused": "check apis and transforms of the provider in {file}: claws would be refused as well",
}
"""What to do, by how a request ended."""


def check(run: PlannedRun, logs: Path | None = None) -> Iterator[Finding]:
    """Check key, prices and answers of the model.

    Args:
        run: the run.
        logs: the folder for the logs of requests; None if nobody asks what they cost.
    """
    choice = run.choice
    if choice is None:
        return
    if run.settings.is_made_elsewhere:
        yield ok("model", "none is needed: the predictions were made elsewhere")
        return
    if not run.settings.has_gateway:
        yield ok("model", f"{choice.model}: the model of each claw's own configuration; it is not asked")
        return
    with tempfile.TemporaryDirectory(prefix="clawbench-checks-") as name:
        scratch = Path(name)
        if choice.upstream is None:
            yield _own_gateway(choice.model, scratch)
            return
        provider = choice.upstream.provider
        where = _key_place(provider)
        yield ok("key", f"in {where}" if where else f"{provider.name} needs none")
        if choice.prices is None:
            to_do = (
                f"declare its prices with the provider in {providers_file()}, so that --spend-limit can be kept"
            )
            yield warning("price", f"not known for {choice.model}: costs can't be shown", to_do)
        else:
            yield ok("price", f"by {choice.prices.manifest()['source']}")
        if run.request and not run.offline:
            yield from _requests(run, choice, provider, logs or scratch, scratch)
        else:
            yield warning("model", f"{choice.model} is not asked", "leave out --no-request and --offline")


def _own_gateway(model: str, scratch: Path) -> Finding:
    """For a model that answers from within the gateway: whether the gateway starts."""
    try:
        with Gateway.start(scratch) as gateway:
            GatewayClient(gateway.control).cost_limit_reached()
    except GatewayError as error:
        return fault("model", f"the gateway that serves {model} does not start: {error}", "see its message")
    return ok("model", f"{model}, from within the gateway: free of cost")


def _requests(run: PlannedRun, choice: Choice, provider: Provider, logs: Path, scratch: Path) -> Iterator[Finding]:
    """Send one request in each format that the claws use."""
    served = run.settings.endpoint
    formats = dict.fromkeys(served.api_for(apis_of(adapter(name))) for name in run.installed)
    # asked once, and not waited for as long as in a run
    hasty = provider.model_copy(update={"retries": 0, "timeout": min(provider.timeout, PATIENCE)})
    assert choice.upstream is not None  # noqa: S101 - it has a provider
    impatient = replace(choice, upstream=choice.upstream.model_copy(update={"provider": hasty}))
    try:
        with Gateway.start(scratch, impatient.gateway_config(None, None, Decimal(0))) as gateway:
            client = GatewayClient(gateway.control)
            for api in formats or served.apis[:1]:
                log = logs / api / "requests.jsonl"
                spec = CaseSpec(case_id=f"check-{api}", model=choice.model, request_log=log.absolute())
                began = time.monotonic()
                ask(client.open_case(spec), api, served.name, PATIENCE + 5)  # type: ignore[arg-type]
                counts = client.close_case(spec.case_id)
                seconds = time.monotonic() - began
                yield _answered(choice.model, provider, api, counts, seconds)  # type: ignore[arg-type]
    except (GatewayError, LookupError) as error:
        yield fault("model", f"the gateway does not serve it: {error}", "see its message")


def _answered(model: str, provider: Provider, api: Api, counts: CaseCounts, seconds: float) -> Finding:
    """The result of a request."""
    check, ending = f"model ({api})", counts.last_ending or "hung"
    if ending in ("ok", "empty"):
        if counts.unknown_usage:
            to_do = "tokens and cost will be estimates; some providers report it with the transform include_usage"
            return warning(check, f"{model} answers, and reports no usage", to_do)
        cost = f", ${counts.cost.priced:.5f}" if counts.cost.priced is not None else ""
        return ok(check, f"{model} answers in {seconds:.1f} s, with {counts.tokens.known} tokens{cost}")
    words = {"key": _key_place(provider) or "no variable", "file": providers_file(), "url": provider.base_url}
    to_do = _TO_DO.get(ending, "try again").format_map(words)
    make = warning if ending == "rate_limited" else fault
    return make(check, f"{model}: {' '.join(counts.last_error.split()) or ending}", to_do)


def _key_place(provider: Provider) -> str:
    return provider.key_env or (str(provider.key_file) if provider.key_file else "")


def clock(run: PlannedRun, registry: str | None) -> Iterator[Finding]:
    """Whether our clock is right, by that of the provider or else of the images' registry.

    Args:
        run: the run.
        registry: its address; None if no registry is needed.
    """
    upstream = run.choice.upstream if run.choice is not None else None
    url = upstream.provider.base_url if upstream is not None else registry
    if run.offline or url is None:
        return
    try:
        began = time.time()
        # send nobody's credentials, not even those in ~/.netrc
        answer = requests.head(url, auth=lambda request: request, timeout=10, allow_redirects=False)
        ended = time.time()
        date = parsedate_to_datetime(answer.headers["Date"]).timestamp()
    except (requests.RequestException, KeyError, ValueError):
        host = urlsplit(url).netloc
        yield warning("clock", f"{host} does not tell the time", "make sure that this machine is set by NTP")
        return
    ahead = max(began - date - 1, 0.0) or min(ended - date, 0.0)
    if abs(ahead) <= _SKEW:
        yield ok("clock", "as the provider's" if upstream is not None else "as the registry's")
        return
    found = f"{abs(ahead):.0f} s {'ahead' if ahead > 0 else 'behind'}: times in records would be wrong"
    make = fault if abs(ahead) > _MUCH_SKEW else warning
    yield make("clock", found, "set it by NTP: certificates and tokens are valid for a limited time")
