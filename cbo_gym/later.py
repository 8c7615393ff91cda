"""Methods whose bodies lie in rooms above their class: what draws a run is not imported by what holds one."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any


class Later:
    """A method that a function of another module is, imported when it is first asked of an object.

    Args:
        path: ``"package.module:function"``; its first argument is the object.
        doc: what the method's documentation says.
    """

    def __init__(self, path: str, doc: str) -> None:
        self._path, self.__doc__ = path, doc

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        module, _, name = self._path.partition(":")
        return partial(getattr(import_module(module), name), instance)
