"""Naming agents and environments with their parameters: ``GP-UCB(beta=0.5)``, ``CBO/BinaryTree-v0(depth=3)``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

AGENT_GROUP = "cbo_gym.agents"
AGENT_METHODS = ("reset", "act", "update", "recommend")


@dataclass(frozen=True)
class Spec:
    """A name and keyword arguments; the text form is its label in results."""

    name: str
    parameters: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Spec:
        """Read ``name`` or ``name(key=value, ...)``; values are Python literals.

        Raises:
            ValueError: if the text has another form.
        """
        name, bracket, rest = text.strip().partition("(")
        if not bracket:
            return cls(name)
        try:
            call = ast.parse(f"f({rest}", mode="eval").body
            if not isinstance(call, ast.Call) or call.args or not name:
                raise ValueError("only keyword arguments are allowed")
            named = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords if k.arg}
        except (SyntaxError, ValueError) as error:
            raise ValueError(
                f"cannot read {text!r}; write NAME or NAME(key=value, ...) with literal values ({error})"
            ) from error
        return cls(name, tuple(sorted(named.items())))

    @property
    def keywords(self) -> dict[str, Any]:
        return dict(self.parameters)

    def __str__(self) -> str:
        inner = ", ".join(f"{key}={value!r}" for key, value in self.parameters)
        return f"{self.name}({inner})" if inner else self.name


def known_agents() -> tuple[str, ...]:
    """Names of the installed agents: the zoo's and those of other packages' entry points."""
    return tuple(sorted(point.name for point in entry_points(group=AGENT_GROUP)))


def matches(label: str, patterns: Iterable[str]) -> bool:
    """Whether a label is one of the patterns, with its parameters or without, or fits one with ``*`` and ``?``.

    ``CBO/BinaryTree-v0(depth=3)`` matches itself, ``CBO/BinaryTree-v0``, and ``CBO/Bin*``.
    """
    return any(pattern in (label, label.partition("(")[0]) or fnmatchcase(label, pattern) for pattern in patterns)


def expand(texts: Iterable[str], known: Sequence[str]) -> list[str]:
    """Replace every text with ``*`` or ``?`` in its name, and no parameters, by the known names that fit it.

    Raises:
        ValueError: if none does.
    """
    expanded: list[str] = []
    for text in texts:
        if "(" in text or not {"*", "?"} & set(text):
            expanded.append(text)
        elif found := [name for name in known if fnmatchcase(name, text)]:
            expanded += found
        else:
            raise ValueError(f"nothing fits {text!r}; there are {', '.join(known)}")
    return list(dict.fromkeys(expanded))


def create_agent(spec: Spec | str) -> Any:
    """An agent from an installed name or from the import path ``package.module:Class``.

    An import path runs that module's code: which one is the caller's own choice.

    Raises:
        ValueError: if there is no such agent, it does not take the parameters, or a library that it needs is missing.
        TypeError: if what is found lacks a method of the Agent interface.
    """
    spec = Spec.parse(spec) if isinstance(spec, str) else spec
    factory = _find_agent(spec.name)
    try:
        agent = factory(**spec.keywords)
    except (TypeError, ImportError) as error:  # a wrong parameter; a library that an extra installs
        raise ValueError(f"cannot create {spec}: {error}") from error
    return require_agent(agent)


def require_agent(agent: Any) -> Any:
    """Return ``agent`` if it has the methods of the Agent interface.

    Raises:
        TypeError: naming the methods that are missing.
    """
    if isinstance(agent, type):
        raise TypeError(f"give an instance of {agent.__name__}, not the class")
    missing = [name for name in AGENT_METHODS if not callable(getattr(agent, name, None))]
    if missing:
        raise TypeError(
            f"{type(agent).__name__} is no agent: it lacks {missing}; an agent has the methods {list(AGENT_METHODS)}"
        )
    return agent


def _find_agent(name: str) -> Any:
    for point in entry_points(group=AGENT_GROUP):
        if point.name == name:
            return point.load()
    module, colon, attribute = name.partition(":")
    if not colon:
        raise ValueError(
            f"no agent is called {name!r}; installed are {', '.join(known_agents())}, "
            "and 'package.module:Class' names any other"
        )
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"cannot import the agent {name!r}: {error}") from error
