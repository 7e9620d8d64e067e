"""The behaviours of a model or provider that fails, or that does not stop."""

from __future__ import annotations

from gateway.behaviours.base import Behaviour, Fault, Job, in_order


def _again(_job: Job, step: int) -> str:
    # the number keeps claws from taking it for a repetition
    return f"sleep 1; echo still looking, round {step + 1}"


def _told(_job: Job, _results: str) -> str:
    return "I ran the commands that I was told to run. There is nothing more to do."


_as_told = in_order(lambda job: job.commands)

hang = Behaviour("takes every request and never answers", fault=Fault.HUNG)
broken = Behaviour("answers every request with HTTP 500", fault=Fault.SERVER_ERROR)
unauthorized = Behaviour("answers every request with HTTP 401", fault=Fault.UNAUTHORIZED)
limited = Behaviour("answers every request with HTTP 429 and Retry-After", fault=Fault.RATE_LIMITED)
dropped = Behaviour("breaks every connection off before it answers", fault=Fault.DROPPED)
empty = Behaviour("answers every request with nothing", fault=Fault.EMPTY)
garbage = Behaviour("answers with a malformed stream that breaks off", fault=Fault.MALFORMED)
loop = Behaviour("calls the shell tool without end", _again)
commands = Behaviour("runs the shell commands that a test gives it", _as_told, _told)
stray = Behaviour(
    "calls tools that it was not offered, then does what commands does", _as_told, _told, strays=True
)
stall = Behaviour("does what commands does, then never answers", _as_told, fault=Fault.HUNG, works_first=True)
flaky = Behaviour(
    "answers two requests with HTTP 500, then does what commands does",
    _as_told,
    _told,
    fault=Fault.SERVER_ERROR,
    faults=2,
)
