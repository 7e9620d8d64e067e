"""Contenders whose patches other tools made: the suite only judges them, and does not know how they came about."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from adapters.base import BadOptionError, ContainerArguments, Runtime
from evaluation.predictions_file import Predictions, PredictionsError, read_predictions

UNKNOWN_MODEL = "unknown"
"""The model's name in the records of such a contender."""
_NAMED = re.compile(r"([a-z][a-z0-9_]*)=(.+)", re.DOTALL)
_LONGEST_NAME = 60


class MadeElsewhere:
    """Takes the place of an adapter (`adapters.base.Adapter`): no claw runs, the cases begin with their patches."""

    install_hint = "nothing is installed: its predictions were made elsewhere"
    prompt_file = "default.txt"
    agent_files = ()
    allowed_tools = None
    min_memory = "1m"
    min_pids = 1

    def __init__(self, name: str, predictions: Predictions) -> None:
        """Wrap predictions.

        Args:
            name: the contender's.
            predictions: the patches.
        """
        self.name = name
        self.predictions = predictions

    def runtime(self) -> Runtime:
        """The predictions; their digest takes the place of a version."""
        return Runtime(f"sha256:{self.predictions.sha256}", self.predictions.path, "--predictions")

    def config_file(self) -> Path:
        """The file of the predictions."""
        return self.predictions.path

    def container_arguments(self) -> ContainerArguments:
        """Nothing: it gets no container."""
        return ContainerArguments()

    def _never(self, *_: object, **__: object) -> NoReturn:
        raise BadOptionError(f"{self.name} can't be run: its predictions were made elsewhere")

    create_agent = send_task = backup_session = usage = final_message = delete_agent = _never


def contenders(given: Sequence[str], known: Collection[str]) -> Mapping[str, MadeElsewhere]:
    """Read the predictions that a command names.

    Args:
        given: `FILE` or `NAME=FILE`, each a file of predictions or a folder with one. Without NAME, the contender is
            named after the `model_name_or_path` of its predictions.
        known: the ids of all instances.

    Raises:
        PredictionsError: a file can't be used, or two have the same name; the message says which and why.
    """
    found: dict[str, MadeElsewhere] = {}
    for word in given:
        named = None if Path(word).exists() else _NAMED.fullmatch(word)
        predictions = read_predictions(Path(named[2] if named else word), known)
        name = named[1] if named else _name_of(predictions)
        if name in found:
            first = found[name].predictions.path
            raise PredictionsError(
                f"{predictions.path} and {first} would both be named {name}: give names, as in before={first}"
            )
        found[name] = MadeElsewhere(name, predictions)
    return found


def _name_of(predictions: Predictions) -> str:
    """A name that a claw could have, as close to the model's name as possible."""
    word = re.sub(r"[^a-z0-9]+", "_", predictions.model_name.lower()).strip("_")
    return f"{'' if word[:1].isalpha() else 'predictions_'}{word}"[:_LONGEST_NAME].strip("_")
