"""Names and methods whose modules are imported at the first use, so that ``import cbo_gym`` stays fast."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import lazy_loader

from cbo_gym.errors import naming_the_extra


def attach_stub(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package whose stub ``__init__.pyi`` lists its names."""
    load, directory, names = lazy_loader.attach_stub(package, file)

    def load_name(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}; it has {', '.join(names)}")
        with naming_the_extra(f"{package}.{name}"):
            return load(name)

    return load_name, directory, names


class LazyMethod:
    """A method bound lazily to a function of another module, which is imported at the first use.

    Args:
        path: ``"package.module:function"``; the function takes the object as its first argument.
        doc: docstring of the method.
    """

    def __init__(self, path: str, doc: str) -> None:
        self._path, self.__doc__ = path, doc

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        module, _, name = self._path.partition(":")
        return partial(getattr(import_module(module), name), instance)
