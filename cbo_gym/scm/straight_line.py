"""Functions written out line by line, as ``dataclasses`` writes ``__init__``.

A generic loop over the variables of a system costs two to three times the mechanisms themselves when one action is
evaluated, which is every step of an environment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cbo_gym.scm.noise import Zero
from cbo_gym.scm.system import Values, Variable


class StraightLine:
    """The function of a system that is being written: ``noise, soft, hard`` to the values of its variables.

    Things are bound to words before they go into a line, names of variables too, so that none is read as source text.

    Args:
        sources: exogenous variables, in the order in which those with noise are drawn.
    """

    def __init__(self, sources: Sequence[Variable]) -> None:
        noisy = [source.name for source in sources if not isinstance(source.noise, Zero)]
        self._draws = {name: f"noise[{place}]" for place, name in enumerate(noisy)}
        self._words: dict[str, str] = {}
        self._scope: dict[str, Any] = {}
        self._lines: list[str] = []

    def bind(self, word: str, thing: Any) -> str:
        """The word, which stands for a thing from now on."""
        self._scope[word] = thing
        return word

    def name(self, variable: str) -> str:
        """The word that stands for the name of a variable."""
        return self.bind(self._words.setdefault(variable, f"name_{len(self._words)}"), variable)

    def dictionary(self, values: Mapping[str, str]) -> str:
        """Values by the names of variables, each what a word or a formula stands for."""
        return "{" + ", ".join(f"{self.name(name)}: {value}" for name, value in values.items()) + "}"

    def add(self, *lines: str) -> None:
        """Write lines."""
        self._lines += lines

    def draw(self, source: str) -> str:
        """The expression for the noise of a variable: 0 where it has none."""
        return self._draws.get(source, "0.0")

    def plus_noise(self, value: str, source: str) -> str:
        """A value with noise added, where the variable has any."""
        return f"{value} + {self._draws[source]}" if source in self._draws else value

    def returning(self, values: Mapping[str, str]) -> Callable[..., Values]:
        """The finished function, of a :meth:`dictionary`."""
        return written("noise, soft, hard", [*self._lines, f"return {self.dictionary(values)}"], self._scope)


def written(arguments: str, lines: Sequence[str], scope: dict[str, Any]) -> Callable[..., Any]:
    """A function of a body in Python, with what its words stand for; of no text that a user gave."""
    exec("\n    ".join([f"def function({arguments}):", *lines]), scope)
    return scope["function"]
