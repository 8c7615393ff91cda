"""Labels: names of agents and environments with their parameters, which identify them in results and commands.

Examples are ``GP-UCB(beta=0.5)`` and ``CBO/BinaryTree-v0(depth=3)``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from cbo_gym.errors import ArgumentError, name_hint, short_repr, shorten

# Wildcards in patterns of labels, and what they stand for.
WILDCARDS = {"*": "any text", "?": "one character"}
# Commands that error messages suggest.
AGENTS_LISTED_BY = "cbo-gym agents"
ENVS_LISTED_BY = "cbo-gym list"
_DOTTED = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_IMPORT_PATH = re.compile(f"{_DOTTED}:{_DOTTED}")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
# Largest length of a label, because Python's parser crashes on deep nesting.
MAX_CHARACTERS = 10_000


@dataclass(frozen=True)
class Spec:
    """A name and keyword arguments, whose ``str`` is the label; the parameters are sorted by name."""

    name: str
    parameters: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def parse(cls, label: str) -> Spec:
        """Read ``name`` or ``name(key=value, ...)``; values are Python literals."""
        if len(label) > MAX_CHARACTERS:
            raise ArgumentError(
                f"cannot read a label of {len(label)} characters, {label[:40]!r}...; write NAME or "
                f"NAME(key=value, ...) in at most {MAX_CHARACTERS}"
            )
        name, bracket, arguments = label.strip().partition("(")
        if not bracket:
            return cls(name)
        try:
            call = ast.parse(f"f({arguments}", mode="eval").body
            match call:
                case ast.Call(func=ast.Name(), args=[], keywords=keywords) if name and all(key.arg for key in keywords):
                    parameters = {str(key.arg): ast.literal_eval(key.value) for key in keywords}
                case _:
                    raise ValueError("only keyword arguments are allowed, in one pair of parentheses")
            if any(isinstance(node, ast.Set) for node in ast.walk(call)):
                raise ValueError("a set has no order, so its label would vary; write a list")
            spec = cls(name).with_parameters(parameters)
            # Writing the label must succeed as well.
            str(spec)
        except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
            # Python's reason for a value that is no literal is an object of its parser.
            reason = "strings in quotation marks" if "malformed node" in str(error) else str(error)
            raise ArgumentError(
                f"cannot read {short_repr(label)}; write NAME or NAME(key=value, ...) with literal values ({reason})"
            ) from error
        return spec

    @classmethod
    def from_label(cls, label: str) -> Spec:
        """Read a label of results; a string of another form is taken as a name without parameters."""
        try:
            return cls.parse(label)
        except ArgumentError:
            return cls(label)

    @property
    def keywords(self) -> dict[str, Any]:
        return dict(self.parameters)

    def with_parameters(self, changes: Mapping[str, Any]) -> Spec:
        """Return this Spec with some parameters added or changed."""
        return Spec(self.name, tuple(sorted({**self.keywords, **changes}.items())))

    # Values may be lists, which have no hash.
    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        # Addresses in memory differ between processes.
        return self._to_string(lambda value: _ADDRESS.sub("", repr(value)))

    @property
    def is_literal(self) -> bool:
        """Whether the label has the values of all parameters, because they are Python literals."""
        try:
            return Spec.parse(str(self)) == self
        except ArgumentError:
            return False

    @property
    def short_label(self) -> str:
        """The label with long parameters cut off, for messages."""
        return shorten(self._to_string(short_repr))

    def _to_string(self, write: Callable[[Any], str]) -> str:
        inner = ", ".join(f"{key}={write(value)}" for key, value in self.parameters)
        return f"{self.name}({inner})" if inner else self.name


def is_import_path(name: Any) -> bool:
    """Return whether a name is an import path: ``package.module:Class``."""
    return isinstance(name, str) and _IMPORT_PATH.fullmatch(name) is not None


def import_paths(label: str) -> list[str]:
    """Return the import paths in a label, which are its name or values of its parameters."""
    spec = Spec.from_label(label)
    return [value for value in (spec.name, *spec.keywords.values()) if is_import_path(value)]


def bare_name(label: str) -> str:
    """Return the name in a label, without its parameters."""
    return label.partition("(")[0]


def matches(label: str, patterns: Iterable[str]) -> bool:
    """Return whether a label, with or without its parameters, matches a pattern, which may have :data:`WILDCARDS`.

    ``CBO/BinaryTree-v0(depth=3)`` matches itself, ``CBO/BinaryTree-v0``, and ``CBO/Bin*``.
    """
    return any(pattern in (label, bare_name(label)) or fnmatchcase(label, pattern) for pattern in patterns)


def expand(labels: Iterable[str], known: Sequence[str], listed_by: str) -> list[str]:
    """Replace every pattern, which is a label with :data:`WILDCARDS` but no parameters, by the known names that fit it.

    Args:
        labels: labels or patterns.
        known: the known names.
        listed_by: the command that lists the known names, for the error message.
    """
    expanded: list[str] = []
    for label in labels:
        if "(" in label or not WILDCARDS.keys() & set(label):
            expanded.append(label)
        elif fitting := [name for name in known if fnmatchcase(name, label)]:
            expanded += fitting
        else:
            raise ArgumentError(f"nothing fits {label!r}{name_hint(label, known, listed_by)}")
    return list(dict.fromkeys(expanded))
