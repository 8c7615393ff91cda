"""Code that lies in no file: on standard input, typed at a prompt, in a notebook's cells, made by ``exec``."""

from __future__ import annotations

import builtins
import hashlib
import inspect
import linecache
import sys
from collections.abc import Iterator
from types import FunctionType

WORD = "interactive"
NOWHERE = "<exec>"  # for the module of what exec made in a room without a name
DIGITS = 12  # of a hash


def module_of(kind: type) -> str:
    """The module that a class says it is of; :data:`NOWHERE` for one that passes for a part of Python."""
    is_pythons = kind.__module__ != "builtins" or getattr(builtins, kind.__name__, None) is kind
    return kind.__module__ if is_pythons else NOWHERE


def typed_stamp(module: str) -> str:
    """The name of a module without a file: ``"interactive.5f2c1e0b9a77"``, with a hash of the texts it is from.

    These are whole cells, or entries at the prompt, as far as a class or a function of them is still there. Python
    keeps them in notebooks, not of standard input nor of ``exec``: then, or if it lacks some, ``"interactive"`` alone.
    """
    texts = {_text(name, module) for name in _names_of_texts(module)}
    if not texts or "" in texts:
        return WORD
    digest = hashlib.sha256()
    for text in sorted(texts):
        digest.update(f"{len(text)}\0{text}".encode())
    return f"{WORD}.{digest.hexdigest()[:DIGITS]}"


def _names_of_texts(module: str) -> Iterator[str]:
    """The names under which Python would keep the texts of a module's classes and functions; empty for an unknown one.

    A class tells it by its methods, of which some may be made by ``exec``: those of a dataclass are.
    """
    for thing in vars(sys.modules.get(module, object)).values():
        if getattr(thing, "__module__", None) != module:
            continue
        if isinstance(thing, FunctionType):
            yield thing.__code__.co_filename
        elif isinstance(thing, type):
            methods = {name for name in map(_file_name, vars(thing).values()) if _text(name, module)}
            yield from methods or {""}


def _text(name: str, module: str) -> str:
    """The text that Python keeps under a name, ``""`` if there is none of this module.

    What ``exec`` is given is called ``<string>`` as the text of ``python -c`` is, which is kept since Python 3.13.
    """
    return "" if name == "<string>" and module != "__main__" else "".join(linecache.getlines(name))


def _file_name(attribute: object) -> str:
    function = inspect.unwrap(getattr(attribute, "__func__", attribute))  # type: ignore[arg-type]
    return function.__code__.co_filename if isinstance(function, FunctionType) else ""
