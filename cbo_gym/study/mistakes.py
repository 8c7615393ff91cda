"""In which part of a description a mistake lies, for messages that name the line of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pydantic import ValidationError

from cbo_gym.errors import CBOGymError
from cbo_gym.study.description import Description
from cbo_gym.validation import placed_errors
from cbo_gym.yaml_files import Place

NEEDED = ("name", "reward", "diagram")  # without which a description fails in another way
Fields = Mapping[str, Any]


@contextmanager
def at(*place: str | int) -> Iterator[None]:
    """Note at an error which part of a description it is about."""
    try:
        yield
    except CBOGymError as error:
        error.__dict__.setdefault("place", place)
        raise


def mistakes(error: CBOGymError, fields: Any, check: Callable[[Fields], object]) -> list[tuple[Place, str]]:
    """The parts of an error, each behind the place in the fields that it is about, ``()`` if unknown.

    Most of what can be wrong is found where fields are put together, far from any of them. The place is then the
    smallest part without which the check succeeds, or else without which it says something else.

    Args:
        error: that the check raised.
        fields: of the description, as they were read.
        check: raises the errors of fields.
    """
    if isinstance(error.__cause__, ValidationError):
        return placed_errors(error.__cause__, Description)
    if "place" in error.__dict__:
        return [(error.__dict__["place"], str(error))]
    if not isinstance(fields, Mapping):
        return [((), str(error))]
    return [(_place(str(error), fields, check), str(error))]


def _place(text: str, fields: Fields, check: Callable[[Fields], object]) -> Place:
    """The smallest part without which the check does not say this text."""
    whole: dict[Place, str | None] = {
        (name,): _said(check, _without(fields, (name,))) for name in fields if name not in NEEDED
    }
    matter = [place for place, said in whole.items() if said != text]
    entries: dict[Place, str | None] = {
        (name, key): _said(check, _without(fields, (name, key)))
        for (name,) in matter
        for key in _keys(fields[str(name)])
    }
    tried = entries | {place: whole[place] for place in matter}
    cured = [place for place, said in tried.items() if said is None]
    changed = [place for place, said in tried.items() if said != text]
    by_name = sorted(cured, key=lambda place: str(place[0]) not in text)  # first those that the text names
    return next(iter(by_name + changed), ())


def _keys(whole: Any) -> list[Any]:
    if isinstance(whole, Mapping):
        return list(whole)
    return list(range(len(whole))) if isinstance(whole, list) else []


def _without(fields: Fields, place: Place) -> Fields:
    """The fields but one, or but one entry of one."""
    name = place[0]
    if len(place) == 1:
        return {key: value for key, value in fields.items() if key != name}
    whole: Any = fields[str(name)]
    if isinstance(whole, Mapping):
        return {**fields, str(name): {key: value for key, value in whole.items() if key != place[1]}}
    return {**fields, str(name): [value for number, value in enumerate(whole) if number != place[1]]}


def _said(check: Callable[[Fields], object], fields: Fields) -> str | None:
    try:
        check(fields)
    except CBOGymError as error:
        return str(error)
    return None
