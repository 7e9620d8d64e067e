"""The behaviours of a model or provider that does not work, and of one that does not stop."""

from __future__ import annotations

from gateway.behaviours.base import Behaviour, Fault, Job


def _again(_job: Job, step: int) -> str:
    # The number keeps claws from taking it for a repetition.
    return f"sleep 1; echo still looking, round {step + 1}"


hang = Behaviour("takes every request and never answers", fault=Fault.HUNG)
broken = Behaviour("answers every request with HTTP 500", fault=Fault.SERVER_ERROR)
unauthorized = Behaviour("answers every request with HTTP 401", fault=Fault.UNAUTHORIZED)
garbage = Behaviour("answers with a malformed stream that breaks off", fault=Fault.MALFORMED)
loop = Behaviour("calls the shell tool without end", _again)
