"""An agent's card: its modes, its parameters with their meanings, its source.

Cards are read from the class: ``modes``, the signature, and the docstrings of the class and its module, in Google's
style.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

from cbo_gym.agent_registry.finding import find_agent, modes_of
from cbo_gym.agent_registry.zoo import zoo

# A line such as "beta (float): its meaning".
ARGUMENT = re.compile(r"\*{0,2}(\w+(?:, \*{0,2}\w+)*)(?: \([^)]*\))?: *(.*)")
ROLE = re.compile(r":\w+:`~?([^`]*)`")
ARGS = "Args:"


@dataclass(frozen=True)
class Parameter:
    """A parameter of an agent.

    Attributes:
        name: name of the parameter, with the stars of ``*args`` or ``**kwargs``.
        default: its ``repr``; None without a default.
        meaning: description in the docstring; empty if it has no description.
    """

    name: str
    default: str | None
    meaning: str


@dataclass(frozen=True)
class AgentCard:
    """The card of an agent.

    Attributes:
        name: name on the command line.
        defined_in: import path of its class or function.
        modes: the feedback modes that it plays; empty if its class has none.
        summary: first paragraph of the docstring of its class.
        source: the method's name and paper, from the docstring of its module.
        parameters: its parameters, in their order.
    """

    name: str
    defined_in: str
    modes: tuple[str, ...]
    summary: str
    source: str
    parameters: tuple[Parameter, ...]


def agent_card(name: str) -> AgentCard:
    """Return the card of an installed agent, or of an import path.

    Raises:
        ArgumentError: if there is no such agent, or it cannot be imported.
    """
    factory = find_agent(name)
    meanings = _meanings(factory)
    try:
        signature: Mapping[str, inspect.Parameter] = inspect.signature(factory).parameters
    except (TypeError, ValueError):
        # Some callables have no signature.
        signature = {}
    parameters = []
    for keyword, parameter in signature.items():
        stars = "*" * (parameter.kind is parameter.VAR_POSITIONAL) + "**" * (parameter.kind is parameter.VAR_KEYWORD)
        default = None if parameter.default is parameter.empty else repr(parameter.default)
        parameters.append(Parameter(f"{stars}{keyword}", default, meanings.get(keyword, "")))
    module = str(getattr(factory, "__module__", ""))
    return AgentCard(
        name=name,
        defined_in=f"{module}:{getattr(factory, '__qualname__', factory)}",
        modes=modes_of(factory),
        summary=_first_paragraph(getattr(factory, "__doc__", None)),
        source=_first_paragraph(getattr(sys.modules.get(module), "__doc__", None)),
        parameters=tuple(parameters),
    )


def zoo_cards() -> dict[str, AgentCard]:
    """Return the cards of this package's agents from ``cards.json``, so that listing agents does not import them."""
    content = files("cbo_gym").joinpath("agents", "cards.json").read_text(encoding="utf-8")
    return {data["name"]: card_of(data) for data in json.loads(content)}


def cards_json() -> str:
    """Return the content of ``cards.json``."""
    return json.dumps([asdict(agent_card(name)) for name in zoo()], indent=1) + "\n"


def card_of(data: Mapping[str, Any]) -> AgentCard:
    """Make a card from plain data, such as JSON from another process."""
    strings = {name: str(data[name]) for name in ("name", "defined_in", "summary", "source")}
    parameters = (Parameter(**parameter) for parameter in data["parameters"])
    return AgentCard(**strings, modes=tuple(data["modes"]), parameters=tuple(parameters))


def _meanings(factory: Any) -> dict[str, str]:
    """Return parameter -> meaning; a class inherits the meanings that its docstring lacks."""
    meanings: dict[str, str] = {}
    for documented in reversed(factory.__mro__ if isinstance(factory, type) else [factory]):
        meanings |= _arguments(documented.__doc__)
    return meanings


def _arguments(doc: str | None) -> dict[str, str]:
    """Return the section ``Args`` of a docstring."""
    lines = inspect.cleandoc(doc or "").splitlines()
    meanings: dict[str, str] = {}
    names: list[str] = []
    for line in lines[lines.index(ARGS) + 1 :] if ARGS in lines else ():
        if line and not line.startswith(" "):
            # The next section begins here.
            break
        entry = ARGUMENT.fullmatch(line[4:]) if not line[4:].startswith(" ") else None
        if entry:
            names = re.findall(r"\w+", entry[1])
            meanings |= dict.fromkeys(names, entry[2])
        else:
            meanings |= {name: f"{meanings[name]} {line.strip()}" for name in names}
    return {name: _plain(meaning) for name, meaning in meanings.items()}


def _first_paragraph(doc: str | None) -> str:
    return _plain(inspect.cleandoc(doc or "").partition("\n\n")[0])


def _plain(doc: str) -> str:
    """Remove markup and line breaks."""
    return " ".join(ROLE.sub(r"\1", doc).replace("``", "").split())
