"""Descriptions of studies as YAML files."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from typing import Any

from pydantic import ValidationError

from cbo_gym.errors import ArgumentError, CBOGymError
from cbo_gym.study.description import Description, at
from cbo_gym.study.study import described, trusts
from cbo_gym.validation import errors_by_path
from cbo_gym.yaml_files import KeyPath, Lines


def checked(
    read: Callable[[], tuple[Any, Lines]],
    *,
    name: str | None = None,
    agent: str | None = None,
    trusted: Collection[str] = (),
) -> dict[str, Any]:
    """The arguments of :func:`create_study`, except the storage, after a check that they fit together.

    Args:
        read: returns the fields of a YAML file, and the lines of its parts.
        name: name of the study, if the fields have none.
        agent: label of the agent, instead of the one in the fields.
        trusted: import paths of agents whose code may be run.

    Raises:
        ArgumentError: naming the line, if there is one, and what is wrong there.
    """
    fields: Any = ()
    lines = Lines(None)
    try:
        fields, lines = read()
        found = _arguments(fields, name, agent, trusted)
        described(**found)
        return found
    except CBOGymError as error:
        parts = [(lines.of(key), words) for key, words in _placed(error, fields if isinstance(fields, dict) else ())]
        raise ArgumentError(
            "; ".join(words if line is None else f"line {line}: {words}" for line, words in parts)
        ) from error


def _placed(error: CBOGymError, fields: Iterable[Any]) -> list[tuple[KeyPath, str]]:
    """The parts of an error, each with the part of the description that it is about, ``()`` if that is not known."""
    if isinstance(error.__cause__, ValidationError):
        return errors_by_path(error.__cause__, Description)
    words = re.findall(r"\w+", str(error))
    named = next(((name,) for name in words if name in fields), ())
    return [(error.__dict__.get("place", named), str(error))]


def _arguments(fields: Any, name: str | None, agent: str | None, trusted: Collection[str]) -> dict[str, Any]:
    """The fields of a description, which nobody has checked yet, as keyword arguments."""
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
