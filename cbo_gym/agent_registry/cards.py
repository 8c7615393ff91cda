"""Cards of agents for ``cbo-gym agents``: feedback modes, parameters with their meanings, and source of the method.

A card is made from the agent's class: its attribute ``modes``, its signature, and the docstrings of the class and its
module, in Google's style.
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

# A line such as "beta (float): its meaning", with the names and the meaning as groups.
ARGUMENT = re.compile(r"\*{0,2}(\w+(?:, \*{0,2}\w+)*)(?: \([^)]*\))?: *(.*)")
# A cross-reference in reStructuredText, such as ":class:`~package.Class`".
CROSS_REFERENCE = re.compile(r":\w+:`~?([^`]*)`")
ARGS = "Args:"
STARS: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


@dataclass(frozen=True)
class Parameter:
    """A parameter of an agent.

    Attributes:
        name: name of the parameter, with the stars of ``*args`` or ``**kwargs``.
        default: ``repr`` of the default; None if there is none.
        meaning: description in the docstring; empty if there is none.
    """

    name: str
    default: str | None
    meaning: str


@dataclass(frozen=True)
class AgentCard:
    """The card of an agent.

    Attributes:
        name: name of the agent, or its import path.
        defined_in: import path of its class or function.
        modes: feedback modes that the agent plays; empty if its class does not list them.
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
    """Return the card of an installed agent, or of the agent with an import path."""
    factory = find_agent(name)
    meanings = _meanings(factory)
    try:
        signature: Mapping[str, inspect.Parameter] = inspect.signature(factory).parameters
    except (TypeError, ValueError):
        # Some callables have no signature.
        signature = {}
    parameters = []
    for keyword, parameter in signature.items():
        default = None if parameter.default is parameter.empty else repr(parameter.default)
        label = STARS.get(parameter.kind, "") + keyword
        parameters.append(Parameter(label, default, meanings.get(keyword, "")))
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
    """Return parameter -> meaning; a class inherits meanings that its own docstring does not give."""
    meanings: dict[str, str] = {}
    for documented in reversed(factory.__mro__ if isinstance(factory, type) else [factory]):
        meanings |= _arguments(documented.__doc__)
    return meanings


def _arguments(doc: str | None) -> dict[str, str]:
    """Return parameter -> meaning of the section ``Args`` of a docstring."""
    lines = inspect.cleandoc(doc or "").splitlines()
    if ARGS not in lines:
        return {}
    meanings: dict[str, str] = {}
    names: list[str] = []
    # Entries are indented by four spaces, their continuations by more.
    for line in lines[lines.index(ARGS) + 1 :]:
        if line and not line.startswith(" "):
            # The next section begins here.
            break
        is_continued = line[4:].startswith(" ")
        if not is_continued and (entry := ARGUMENT.fullmatch(line[4:])):
            names = re.findall(r"\w+", entry[1])
            meanings |= dict.fromkeys(names, entry[2])
        else:
            meanings |= {name: f"{meanings[name]} {line.strip()}" for name in names}
    return {name: _plain(meaning) for name, meaning in meanings.items()}


def _first_paragraph(doc: str | None) -> str:
    return _plain(inspect.cleandoc(doc or "").partition("\n\n")[0])


def _plain(doc: str) -> str:
    """Remove markup and line breaks."""
    return " ".join(CROSS_REFERENCE.sub(r"\1", doc).replace("``", "").split())
