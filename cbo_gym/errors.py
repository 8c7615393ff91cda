"""Errors that a user can correct. All others are bugs, and their tracebacks are shown.

Each class also inherits from a built-in exception, so that ``except ValueError`` works.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from reprlib import Repr
from typing import Any

# Number of characters of a value that a message repeats.
MAX_LENGTH = 200
# Number of characters of an error with its traceback.
MAX_ERROR_LENGTH = 10_000
# Largest number of names that a message lists in full.
FEW_NAMES = 12
# Exceptions that third-party code may raise.
THIRD_PARTY_ERRORS = (Exception, SystemExit, GeneratorExit)
# Representation that cuts off long and deeply nested values.
_SHORT = Repr()
_SHORT.maxlevel = 4
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = _SHORT.maxset = _SHORT.maxfrozenset = _SHORT.maxarray = 12
_SHORT.maxstring = _SHORT.maxlong = _SHORT.maxother = MAX_LENGTH


class CBOGymError(Exception):
    """Base class: an input of cbo-gym is wrong, or something that it needs is missing."""


class ArgumentError(CBOGymError, ValueError):
    """A value that is not allowed: an argument, a parameter, a name, the content of a file."""


class ArgumentTypeError(CBOGymError, TypeError):
    """An object of the wrong type."""


class UnsupportedModeError(ArgumentError):
    """Raised by ``Agent.reset`` for a task that the agent does not play, usually a task of another feedback mode."""


class HiddenGraphError(UnsupportedModeError):
    """The agent needs a causal diagram, and that of the task is hidden."""


class OperationError(CBOGymError, RuntimeError):
    """An operation failed: a worker process died, or equations overflowed or did not converge."""


#: Argument of ``pip install``: the folder of the clone; ``make release`` replaces it by the name on PyPI.
PACKAGE_SOURCE = "."


def how_to_install(extra: str) -> str:
    """Return the command that installs an extra."""
    folder = " in the folder of the clone" if PACKAGE_SOURCE == "." else ""
    return f"pip install '{PACKAGE_SOURCE}[{extra}]'{folder}"


class MissingExtraError(CBOGymError, ImportError):
    """A library that an extra installs is missing."""

    def __init__(self, subject: str, extra: str) -> None:
        super().__init__(f"{subject} needs libraries that are not installed: {how_to_install(extra)}")


LIBRARIES_OF_EXTRA = {
    "agents": ("torch", "gpytorch", "botorch", "linear_operator", "sklearn"),
    "evaluation": ("polars", "matplotlib", "jinja2", "packaging", "filelock"),
    "sb3": ("stable_baselines3",),
    "optuna": ("optuna",),
    "discovery": ("causallearn",),
    "dask": ("distributed",),
    "pandas": ("pandas", "pyarrow"),
    "study": ("sqlalchemy",),
    "excel": ("openpyxl",),
    "serve": ("fastapi", "starlette", "uvicorn", "python_multipart"),
}
EXTRA_OF = {library: extra for extra, libraries in LIBRARIES_OF_EXTRA.items() for library in libraries}


@contextmanager
def naming_the_extra(subject: str, extra: str = "") -> Iterator[None]:
    """If importing ``subject`` fails because a library is missing, raise an error that names the extra to install.

    Args:
        subject: Name of the import.
        extra: Extra that installs all libraries that ``subject`` needs; if empty, the extra of the missing library.

    Raises:
        MissingExtraError: in place of the ModuleNotFoundError of a library in ``EXTRA_OF``; other errors pass.
    """
    try:
        with warnings.catch_warnings():
            # Importing GPyTorch raises a deprecation warning of torch, which is fatal if warnings are errors.
            warnings.filterwarnings("ignore", "`?torch.jit", DeprecationWarning)
            yield
    except ModuleNotFoundError as error:
        extra_of_library = EXTRA_OF.get((error.name or "").partition(".")[0])
        if extra_of_library is None:
            raise
        raise MissingExtraError(subject, extra or extra_of_library) from error


def did_you_mean(given: object, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'MCBO'?"`` with the known names closest to a given name; an empty string without any."""
    string = given if isinstance(given, str) else short_repr(given)
    by_lower = {name.lower(): name for name in known}
    close = get_close_matches(string.lower(), by_lower, n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(repr(by_lower[match]) for match in close)}?" if close else ""


def import_hint(error: BaseException) -> str:
    """Return a suggestion for an import path whose module, or object in it, does not exist."""
    if isinstance(error, AttributeError) and isinstance(error.name, str):
        return did_you_mean(error.name, [name for name in dir(error.obj) if not name.startswith("_")])
    if isinstance(error, ModuleNotFoundError) and error.name:
        return did_you_mean(error.name, [path.stem for path in Path.cwd().glob("*.py")])
    return ""


def name_hint(given: object, known: Iterable[str], listed_by: str) -> str:
    """Suggest the names closest to an unknown name in a message, then list all valid names if they are few.

    Args:
        given: The unknown name.
        known: All valid names.
        listed_by: Command that lists all names; the message gives it if they are too many to list.
    """
    names = list(known)
    is_short = len(names) <= FEW_NAMES
    choices = f"there are {', '.join(names) or 'none'}" if is_short else f"{listed_by} lists all {len(names)}"
    return f"{did_you_mean(given, names)}; {choices}"


def printable(string: str) -> str:
    r"""Return the string with unprintable characters escaped as in Python's source: a line break as ``\n``."""
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in string)


def abridge(string: str) -> str:
    """Return an error or a traceback that can be stored: surrogates escaped, the middle of a long one left out."""
    escaped = string.strip().encode("utf-8", "backslashreplace").decode()
    half = MAX_ERROR_LENGTH // 2
    if len(escaped) <= MAX_ERROR_LENGTH:
        return escaped
    return f"{escaped[:half]}\n... {len(escaped) - 2 * half} characters ...\n{escaped[-half:]}"


def short_repr(given: Any) -> str:
    """Return the representation of a value for a message: one short line."""
    try:
        string = " ".join(_SHORT.repr(given).split())
    except THIRD_PARTY_ERRORS:
        # A third-party __repr__ may raise anything.
        return f"an object of type {type(given).__name__}"
    return shorten(string)


def message_of(error: BaseException) -> str:
    """Return the message of an error, even if its ``__str__`` fails."""
    try:
        return str(error)
    except BaseException as another:
        return f"its string raises {type(another).__name__}"


def shorten(string: str) -> str:
    """Return the string, cut off after :data:`MAX_LENGTH` characters."""
    return string if len(string) <= MAX_LENGTH else f"{string[:MAX_LENGTH]}..."
