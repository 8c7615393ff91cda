"""A study's description as YAML has it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from typing import Any

from pydantic import ValidationError

from cbo_gym.errors import ArgumentError, CBOGymError
from cbo_gym.study.description import Description, at
from cbo_gym.study.study import described, trusts
from cbo_gym.validation import placed_errors
from cbo_gym.yaml_files import Lines, Place


def checked(
    read: Callable[[], tuple[Any, Lines]],
    *,
    name: str | None = None,
    agent: str | None = None,
    trusted: Collection[str] = (),
) -> dict[str, Any]:
    """The arguments of :func:`create_study`, but for the storage, which fit together.

    Args:
        read: gives fields, as a YAML file holds them, and the lines of its parts.
        name: of the study, where the fields give none.
        agent: who suggests, in place of the one that the fields name.
        trusted: import paths of agents whose code may be run.

    Raises:
        ArgumentError: naming the line, where there is one, and what is wrong there.
    """
    fields: Any = ()
    lines = Lines(None)
    try:
        fields, lines = read()
        found = _arguments(fields, name, agent, trusted)
        described(**found)
        return found
    except CBOGymError as error:
        told = [(lines.of(place), text) for place, text in _placed(error, fields if isinstance(fields, dict) else ())]
        raise ArgumentError(
            "; ".join(text if line is None else f"line {line}: {text}" for line, text in told)
        ) from error


def _placed(error: CBOGymError, fields: Iterable[Any]) -> list[tuple[Place, str]]:
    """The parts of an error, each with the part of the description that it is about, ``()`` if that is not known."""
    if isinstance(error.__cause__, ValidationError):
        return placed_errors(error.__cause__, Description)
    words = re.findall(r"\w+", str(error))
    named = next(((name,) for name in words if name in fields), ())
    return [(error.__dict__.get("place", named), str(error))]


def _arguments(fields: Any, name: str | None, agent: str | None, trusted: Collection[str]) -> dict[str, Any]:
    """The fields of a description that anybody may have written, as keyword arguments."""
    if not isinstance(fields, dict) or not all(isinstance(key, str) for key in fields):
        raise ArgumentError("a description is a mapping of fields: name, reward, diagram, settable, agent, ...")
    about = dict(fields)
    named = about.get("agent", "Auto") if agent is None else agent
    if isinstance(named, str) and agent is None and not trusts(trusted, named):
        with at("agent"):
            raise ArgumentError(
                f"it names the agent {named!r}, an import path, whose code would be run; if you trust it, say so: "
                f"--agent {named}"
            )
    if "storage" in about:
        with at("storage"):
            raise ArgumentError("the database is not a field of the description; leave out storage")
    called = about.pop("name", None) or name
    if not called:
        raise ArgumentError("the study needs a name")
    return {**about, "name": called, "agent": named}
