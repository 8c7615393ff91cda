"""Functions compiled from lines of Python, as ``dataclasses`` compiles ``__init__``.

With one action, as in every step of an environment, a loop over the variables of a system costs two to three times the
mechanisms themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cbo_gym.scm.noise import Zero
from cbo_gym.scm.system import Values, Variable


class StraightLine:
    """Builder of the function of a system: ``noise, soft, hard`` to the values of its variables.

    Objects and names of variables are bound to identifiers, so that no name is read as source code.

    Args:
        sources: exogenous variables, in the order of the draws.
    """

    def __init__(self, sources: Sequence[Variable]) -> None:
        noisy = [source.name for source in sources if not isinstance(source.noise, Zero)]
        self._draws = {name: f"noise[{index}]" for index, name in enumerate(noisy)}
        self._identifiers: dict[str, str] = {}
        self._scope: dict[str, Any] = {}
        self._lines: list[str] = []
        self._sums: dict[str, str] = {}

    def bind(self, identifier: str, value: Any) -> str:
        """Bind an identifier to an object; return the identifier."""
        self._scope[identifier] = value
        return identifier

    def name(self, variable: str) -> str:
        """Return the identifier of the name of a variable."""
        return self.bind(self._identifiers.setdefault(variable, f"name_{len(self._identifiers)}"), variable)

    def dictionary(self, values: Mapping[str, str]) -> str:
        """Return a dictionary display: names of variables to expressions."""
        return "{" + ", ".join(f"{self.name(name)}: {value}" for name, value in values.items()) + "}"

    def add(self, *lines: str) -> None:
        """Add lines to the body of the function."""
        self._lines += lines

    def draw(self, source: str) -> str:
        """Return the expression for the noise of a variable, 0 without noise."""
        return self._draws.get(source, "0.0")

    def plus_noise(self, value: str, source: str) -> str:
        """Return an expression plus the noise of a variable, if there is any."""
        return f"{value} + {self._draws[source]}" if source in self._draws else value

    def share_sums(self, code: str) -> str:
        """Return code in which each sum ``(v1 + v2)`` is a variable, computed where it first appears."""

        def share(match: re.Match[str]) -> str:
            if match[0] not in self._sums:
                self._sums[match[0]] = f"sum{len(self._sums)}"
                self.add(f"{self._sums[match[0]]} = {match[0]}")
            return self._sums[match[0]]

        return re.sub(r"\(v\d+(?: \+ v\d+)+\)", share, code)

    def compile(self, values: Mapping[str, str]) -> Callable[..., Values]:
        """Compile the function, which returns a :meth:`dictionary`."""
        return compile_function("noise, soft, hard", [*self._lines, f"return {self.dictionary(values)}"], self._scope)


def compile_function(arguments: str, lines: Sequence[str], scope: dict[str, Any]) -> Callable[..., Any]:
    """Compile a function from the lines of its body and its globals; never from a user's string."""
    exec("\n    ".join([f"def function({arguments}):", *lines]), scope)
    return scope["function"]
