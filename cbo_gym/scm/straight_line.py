"""Straight-line code (code without loops) for systems: functions compiled from one line of Python for each variable.

``dataclasses`` compiles ``__init__`` in the same way. This saves time in the steps of environments, where a loop over
the variables would take two to three times as long as the mechanisms themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cbo_gym.scm.noise import Zero
from cbo_gym.scm.system import Values, Variable


class StraightLineCode:
    """Builder of a function that computes a system's variables from the noise and the interventions, soft and hard.

    The code refers to objects and to the names of variables by identifiers, so no name is run as code.

    Args:
        sources: the variables with noise, in the order of the noise's draws; variables without noise are ignored.
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

    def name_identifier(self, variable: str) -> str:
        """Return the identifier that is bound to the name of a variable, a string."""
        return self.bind(self._identifiers.setdefault(variable, f"name_{len(self._identifiers)}"), variable)

    def dictionary(self, values: Mapping[str, str]) -> str:
        """Return the code of a dictionary from names of variables to values, given the code of the values."""
        return "{" + ", ".join(f"{self.name_identifier(name)}: {value}" for name, value in values.items()) + "}"

    def add(self, *lines: str) -> None:
        """Add lines to the body of the function."""
        self._lines += lines

    def noise(self, source: str) -> str:
        """Return the code of the noise of a variable; ``"0.0"`` without noise."""
        return self._draws.get(source, "0.0")

    def plus_noise(self, value: str, source: str) -> str:
        """Return the code of a value plus the noise of a variable, if it has any."""
        return f"{value} + {self._draws[source]}" if source in self._draws else value

    def share_sums(self, code: str) -> str:
        """Replace each sum ``(v1 + v2)`` in code by a local variable, which is computed once, and return the code."""

        def share(match: re.Match[str]) -> str:
            if match[0] not in self._sums:
                self._sums[match[0]] = f"sum{len(self._sums)}"
                self.add(f"{self._sums[match[0]]} = {match[0]}")
            return self._sums[match[0]]

        return re.sub(r"\(v\d+(?: \+ v\d+)+\)", share, code)

    def compile(self, values: Mapping[str, str]) -> Callable[..., Values]:
        """Compile the function.

        Args:
            values: name of each variable that the function returns -> the code of its value.
        """
        # Python builds a literal of more than 16 entries from several, which takes longer than to fill a copy.
        self.bind("blank", dict.fromkeys(values))
        entries = [f"values[{self.name_identifier(name)}] = {value}" for name, value in values.items()]
        lines = [*self._lines, "values = blank.copy()", *entries, "return values"]
        return compile_function("noise, soft, hard", lines, self._scope)


def compile_function(arguments: str, lines: Sequence[str], scope: dict[str, Any]) -> Callable[..., Any]:
    """Compile a function from the lines of its body and its globals; never from a user's string."""
    exec("\n    ".join([f"def function({arguments}):", *lines]), scope)
    return scope["function"]
