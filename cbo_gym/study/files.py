"""Descriptions of studies from YAML files and from the form of the page, with errors that name the line."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from cbo_gym._util.validation import errors_by_path
from cbo_gym._util.yaml import KeyPath, Lines
from cbo_gym.errors import ArgumentError, CBOGymError
from cbo_gym.scm import CausalDiagram
from cbo_gym.study.description import Description, errors_at
from cbo_gym.study.study import describe, trusts


def read_arguments(
    read: Callable[[], tuple[Any, Lines]],
    *,
    name: str | None = None,
    agent: str | None = None,
    diagram: Path | None = None,
    trusted: Collection[str] = (),
    opens_databases: bool = False,
) -> dict[str, Any]:
    """Return the arguments of :func:`create_study`, except the storage, after a check that they fit together.

    Args:
        read: returns the fields of a description, and their lines in a YAML file.
        name: name of the study if the fields have none.
        agent: label of the agent, in place of the one in the fields.
        diagram: file of the diagram, in place of the one in the fields.
        trusted: import paths of agents whose code may be run.
        opens_databases: whether the fields may name the database of an earlier study.
    """
    fields: Any = ()
    lines = Lines(None)
    try:
        fields, lines = read()
        arguments = _arguments(fields, name, agent, trusted)
        if diagram is not None:
            with errors_at("diagram"):
                arguments["diagram"] = CausalDiagram.read(diagram)
        if "prior" in arguments and not opens_databases:
            with errors_at("prior"):
                raise ArgumentError(
                    "the page opens no other database; leave out prior, and import the rounds with the campaign's name"
                )
        describe(**{name: value for name, value in arguments.items() if name not in ("prior", "differs")})
        return arguments
    except CBOGymError as error:
        names = fields if isinstance(fields, dict) else ()
        messages = []
        for path, message in _locate(error, names):
            line = lines.of(path)
            messages.append(message if line is None else f"line {line}: {message}")
        raise ArgumentError("; ".join(messages)) from error


def _locate(error: CBOGymError, fields: Iterable[Any]) -> list[tuple[KeyPath, str]]:
    """Return the messages of an error, each with the path of its field; ``()`` if that is not known."""
    if isinstance(error.__cause__, ValidationError):
        return errors_by_path(error.__cause__, Description)
    words = re.findall(r"\w+", str(error))
    first_field = next(((word,) for word in words if word in fields), ())
    return [(error.__dict__.get("path", first_field), str(error))]


def _arguments(fields: Any, name: str | None, agent: str | None, trusted: Collection[str]) -> dict[str, Any]:
    """Return the fields of a description as keyword arguments, before they are checked."""
    if not isinstance(fields, dict) or not all(isinstance(key, str) for key in fields):
        raise ArgumentError("a description is a mapping of fields: name, reward, diagram, settable, agent, ...")
    document = dict(fields)
    label = document.get("agent", "Auto") if agent is None else agent
    if isinstance(label, str) and agent is None and not trusts(trusted, label):
        with errors_at("agent"):
            raise ArgumentError(
                f"it names the agent {label!r}, an import path, whose code would be run; if you trust it, pass "
                f"--agent {label}"
            )
    if "storage" in document:
        with errors_at("storage"):
            raise ArgumentError("the database is not a field of the description; leave out storage")
    study_name = document.pop("name", None) or name
    if not study_name:
        raise ArgumentError("the study needs a name")
    return {**document, "name": study_name, "agent": label}
