"""A study's description as YAML has it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from cbo_gym.errors import ArgumentError, CBOGymError
from cbo_gym.study.mistakes import at, mistakes
from cbo_gym.study.study import described, trusts
from cbo_gym.yaml_files import Lines


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

    def arguments(fields: Any) -> dict[str, Any]:
        found = arguments_of(fields, name=name, agent=agent, trusted=trusted)
        described(**found)
        return found

    fields: Any = {}
    lines = Lines(None)
    try:
        fields, lines = read()
        return arguments(fields)
    except CBOGymError as error:
        found = mistakes(error, fields, arguments)
        said = [text if (line := lines.of(place)) is None else f"line {line}: {text}" for place, text in found]
        raise ArgumentError("; ".join(said)) from error


def arguments_of(
    fields: Any, *, name: str | None = None, agent: str | None = None, trusted: Collection[str] = ()
) -> dict[str, Any]:
    """The arguments of :func:`create_study`, but for the storage, from a description that anybody may have written.

    Args:
        fields: a mapping, as a YAML file holds it.
        name: of the study, where the fields give none.
        agent: who suggests, in place of the one that the fields name.
        trusted: import paths of agents whose code may be run.

    Raises:
        ArgumentError: if these are no fields, or they name an agent that is an import path nobody trusts.
    """
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
