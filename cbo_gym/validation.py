"""Files with a schema: models that refuse what they do not know, and errors that name the field."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, ValidationError

from cbo_gym.errors import did_you_mean

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

MOST_ERRORS = 10  # in one message
LONGEST_INPUT = 300  # characters of it that are shown


class StrictModel(BaseModel):
    """A part of a file; keys that it does not have are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def field_errors(error: ValidationError, model: type[BaseModel] | None = None) -> str:
    """The error in each field of a file, for people; misspelt keys with what may have been meant.

    Args:
        error: of the validation.
        model: that the file was validated against, for what may have been meant.
    """
    found = placed_errors(error, model)
    more = [f"and {len(found) - MOST_ERRORS} more"] if len(found) > MOST_ERRORS else []
    return "; ".join([*(text for _, text in found[:MOST_ERRORS]), *more])


def placed_errors(
    error: ValidationError, model: type[BaseModel] | None = None
) -> list[tuple[tuple[str | int, ...], str]]:
    """Each error of :func:`field_errors` by itself, with the keys that lead to the field."""
    return [(found["loc"], _one(found, model)) for found in error.errors(include_url=False)]


def _one(found: ErrorDetails, model: type[BaseModel] | None) -> str:
    where = ".".join(map(str, found["loc"])) or "(the entry)"
    if found["type"] == "missing":  # the input is the whole part of the file
        return f"field {where}: {found['msg']}"
    hint = ""
    if model is not None and found["type"] == "extra_forbidden":
        hint = did_you_mean(str(found["loc"][-1]), _keys(model))
    return f"field {where}: {found['msg']}, given {_shortened(repr(found['input']))}{hint}"


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_INPUT else f"{text[:LONGEST_INPUT]}..."


def _keys(model: type[BaseModel]) -> set[str]:
    """The keys of a model and of the models that its fields name."""
    keys = set(model.model_fields)
    for field in model.model_fields.values():
        for part in (field.annotation, *getattr(field.annotation, "__args__", ())):
            for inner in (part, *getattr(part, "__args__", ())):
                if isinstance(inner, type) and issubclass(inner, BaseModel):
                    keys |= set(inner.model_fields)
    return keys
