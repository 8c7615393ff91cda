"""Stamps of code without a file: classes from a prompt, a notebook, standard input, or ``exec``.

A stamp identifies the code of a third-party agent or problem in a run, see :mod:`cbo_gym.evaluation.runs.revisions`.
"""

from __future__ import annotations

import builtins
import hashlib
import inspect
import linecache
import sys
from collections.abc import Iterator
from types import FunctionType

# Stamp of code whose source is unknown.
INTERACTIVE = "interactive"
# Module name for classes that exec defined in a namespace without ``__name__``.
EXEC_MODULE = "<exec>"
# Number of hexadecimal digits of a hash.
HASH_DIGITS = 12


def module_of(cls: type) -> str:
    """Return the name of a class's module, or :data:`EXEC_MODULE`.

    Python gives a class that exec defines in a namespace without ``__name__`` the module ``builtins``.
    """
    is_known = cls.__module__ != "builtins" or getattr(builtins, cls.__name__, None) is cls
    return cls.__module__ if is_known else EXEC_MODULE


def interactive_stamp(module: str) -> str:
    """Return the stamp of a module without a file: ``"interactive.5f2c1e0b9a77"``, with a hash of its source code.

    The source code is that of all cells, or entries at the prompt, that defined a class or a function of the module.
    Python keeps the source of notebooks, but not of standard input or ``exec``. If some of it is unknown, the stamp is
    ``"interactive"``.
    """
    codes = {_source(name, module) for name in _source_names(module)}
    if not codes or "" in codes:
        return INTERACTIVE
    digest = hashlib.sha256()
    for code in sorted(codes):
        digest.update(f"{len(code)}\0{code}".encode())
    return f"{INTERACTIVE}.{digest.hexdigest()[:HASH_DIGITS]}"


def _source_names(module: str) -> Iterator[str]:
    """Yield the file names of the source code of a module's classes and functions; empty strings if unknown.

    The file name of a class is that of its methods, but not of generated methods such as those of a dataclass.
    """
    for value in vars(sys.modules.get(module, object)).values():
        if getattr(value, "__module__", None) != module:
            continue
        if isinstance(value, FunctionType):
            yield value.__code__.co_filename
        elif isinstance(value, type):
            methods = {name for name in map(_file_name, vars(value).values()) if _source(name, module)}
            yield from methods or {""}


def _source(name: str, module: str) -> str:
    """Return the source code that Python keeps under a file name; empty if it keeps none, or not of this module.

    The code of ``exec`` and of ``python -c`` has the name ``<string>``; Python 3.13 and later keep only the latter.
    """
    return "" if name == "<string>" and module != "__main__" else "".join(linecache.getlines(name))


def _file_name(attribute: object) -> str:
    function = inspect.unwrap(getattr(attribute, "__func__", attribute))  # type: ignore[arg-type]
    return function.__code__.co_filename if isinstance(function, FunctionType) else ""
