"""Files with a schema: models that refuse unknown keys, and errors that name the field."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from cbo_gym.errors import did_you_mean

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

MAX_ERRORS = 10  # in one message
MAX_INPUT = 300  # characters of it that are shown


class StrictModel(BaseModel):
    """A part of a file; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def field_errors(error: ValidationError, model: type[BaseModel] | None = None) -> str:
    """The error in each field of a file, with suggestions for misspelt keys.

    Args:
        error: Error of the validation.
        model: Model of the file, for suggestions.
    """
    found = placed_errors(error, model)
    more = [f"and {len(found) - MAX_ERRORS} more"] if len(found) > MAX_ERRORS else []
    return "; ".join([*(text for _, text in found[:MAX_ERRORS]), *more])


def placed_errors(
    error: ValidationError, model: type[BaseModel] | None = None
) -> list[tuple[tuple[str | int, ...], str]]:
    """Each error of :func:`field_errors`, with the keys that lead to its field."""
    found = error.errors(include_url=False)
    return [_one(one, model) for one in found if not _is_beside_the_point(one, found)]


def _is_beside_the_point(error: ErrorDetails, others: Sequence[ErrorDetails]) -> bool:
    """Whether the error refuses a mapping as a whole while other errors name the fields inside it."""
    path = error["loc"][:-1]
    return (
        error["type"].endswith("_type")
        and isinstance(error["input"], dict)
        and any(len(other["loc"]) > len(error["loc"]) and other["loc"][: len(path)] == path for other in others)
    )


def _one(found: ErrorDetails, model: type[BaseModel] | None) -> tuple[tuple[str | int, ...], str]:
    path, known = _path_and_fields(found["loc"], model)
    where = ".".join(map(str, path)) or "(the entry)"
    given = f", given {_shortened(repr(found['input']))}"
    if found["type"] == "missing":  # the input is the whole part of the file
        return path, f"field {where}: {found['msg']}"
    if found["type"] == "extra_forbidden":
        among = f" among {', '.join(known)}" if known else ""
        return path, f"field {where}: there is no such field{among}{did_you_mean(str(path[-1]), known)}"
    if found["type"] == "value_error":
        message = str(found["ctx"]["error"])
        return path, f"field {where}: {message}{'' if '; given ' in message else given}"
    if found["type"] == "string_type" and isinstance(found["input"], bool | int | float):
        given += "; a string that looks like a number or a boolean needs quotation marks"
    if found["type"] in ("literal_error", "enum"):
        given += did_you_mean(found["input"], re.findall("'(.*?)'", found["ctx"]["expected"]))
    return path, f"field {where}: {found['msg']}{given}"


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_INPUT else f"{text[:MAX_INPUT]}..."


def _path_and_fields(
    loc: tuple[str | int, ...], model: type[BaseModel] | None
) -> tuple[tuple[str | int, ...], list[str]]:
    """The keys that lead to a field, without names of models, and the fields that are known there."""
    path: list[str | int] = []
    models = [] if model is None else [model]
    for part in loc[:-1]:
        if named := [one for one in models if one.__name__ == part]:
            models = named
            continue
        path.append(part)
        below = [field.annotation for one in models if (field := one.model_fields.get(str(part)))]
        models = [inner for annotation in below for inner in _models_in(annotation)] or models
    return (*path, *loc[-1:]), sorted({name for one in models for name in one.model_fields})


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in getattr(annotation, "__args__", ()) for model in _models_in(part)]
