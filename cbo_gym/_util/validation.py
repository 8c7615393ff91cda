"""Base class of pydantic models of files, and readable messages for pydantic's validation errors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from cbo_gym.errors import did_you_mean

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

# Largest number of errors in one message.
MAX_ERRORS = 10
# Largest number of characters of the input in a message.
MAX_INPUT = 300


class StrictModel(BaseModel):
    """Model of a file, or of one section of a file; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def field_errors(error: ValidationError, model: type[BaseModel] | None = None) -> str:
    """Return one message with the errors of all fields, and suggestions for misspelt keys.

    Args:
        error: Error of the validation.
        model: Model of the file, whose fields are suggested; without it, nothing is suggested.
    """
    errors = errors_by_path(error, model)
    remainder = [f"and {len(errors) - MAX_ERRORS} more"] if len(errors) > MAX_ERRORS else []
    return "; ".join([*(message for _, message in errors[:MAX_ERRORS]), *remainder])


def errors_by_path(
    error: ValidationError, model: type[BaseModel] | None = None
) -> list[tuple[tuple[str | int, ...], str]]:
    """Return the keys that lead to each wrong field, and the message of its error."""
    errors = error.errors(include_url=False)
    return [_describe(details, model) for details in errors if not _is_redundant(details, errors)]


def _is_redundant(error: ErrorDetails, others: Sequence[ErrorDetails]) -> bool:
    """Return whether the error refuses a mapping as a whole while other errors name the fields inside it."""
    parent = error["loc"][:-1]
    return (
        error["type"].endswith("_type")
        and isinstance(error["input"], dict)
        and any(len(other["loc"]) > len(error["loc"]) and other["loc"][: len(parent)] == parent for other in others)
    )


def _describe(error: ErrorDetails, model: type[BaseModel] | None) -> tuple[tuple[str | int, ...], str]:
    path, fields = _path_and_fields(error["loc"], model)
    location = ".".join(map(str, path)) or "(the entry)"
    given = repr(error["input"])
    value = f", given {given}" if len(given) <= MAX_INPUT else f", given {given[:MAX_INPUT]}..."
    # The input of a missing field is the whole mapping, which is not shown.
    if error["type"] == "missing":
        return path, f"field {location}: {error['msg']}"
    if error["type"] == "extra_forbidden":
        among = f" among {', '.join(fields)}" if fields else ""
        return path, f"field {location}: there is no such field{among}{did_you_mean(str(path[-1]), fields)}"
    if error["type"] == "value_error":
        message = str(error["ctx"]["error"])
        return path, f"field {location}: {message}{'' if '; value ' in message else value}"
    if error["type"] == "string_type" and isinstance(error["input"], bool | int | float):
        value += "; a string that looks like a number or a boolean needs quotation marks"
    if error["type"] in ("literal_error", "enum"):
        value += did_you_mean(error["input"], re.findall("'(.*?)'", error["ctx"]["expected"]))
    return path, f"field {location}: {error['msg']}{value}"


def _path_and_fields(
    loc: tuple[str | int, ...], model: type[BaseModel] | None
) -> tuple[tuple[str | int, ...], list[str]]:
    """Return the keys that lead to a field, without names of models, and the allowed fields beside it."""
    path: list[str | int] = []
    models = [] if model is None else [model]
    for key in loc[:-1]:
        # In a union of models, pydantic adds the name of the model that it tried to the keys.
        if members := [member for member in models if member.__name__ == key]:
            models = members
            continue
        path.append(key)
        fields = [model.model_fields.get(str(key)) for model in models]
        models = [inner for field in fields if field for inner in _models_in(field.annotation)] or models
    return (*path, *loc[-1:]), sorted({name for model in models for name in model.model_fields})


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in getattr(annotation, "__args__", ()) for model in _models_in(argument)]
