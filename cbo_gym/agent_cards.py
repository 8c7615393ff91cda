"""An agent's card: what it plays, its parameters with their meanings, where it comes from.

All is read from the class: ``modes``, the signature, and the docstrings of the class and its module, which are in
Google's style.
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

from cbo_gym.agent_finder import find_agent, modes_of
from cbo_gym.agents.zoo import zoo

ARGUMENT = re.compile(r"\*{0,2}(\w+(?:, \*{0,2}\w+)*)(?: \([^)]*\))?: *(.*)")  # "beta (float): its meaning"
ROLE = re.compile(r":\w+:`~?([^`]*)`")
ARGS = "Args:"


@dataclass(frozen=True)
class Parameter:
    """One keyword argument.

    Attributes:
        name: with its stars where it stands for any others.
        default: as Python writes it; None if there is none.
        meaning: as the docstring has it; empty if it says nothing.
    """

    name: str
    default: str | None
    meaning: str


@dataclass(frozen=True)
class AgentCard:
    """One agent.

    Attributes:
        name: as it is given on the command line.
        defined_in: import path of what makes it.
        modes: the feedback modes that it plays; empty if it does not say.
        summary: what it does, in a sentence.
        source: the method's name and paper, from its module.
        parameters: in their order.
    """

    name: str
    defined_in: str
    modes: tuple[str, ...]
    summary: str
    source: str
    parameters: tuple[Parameter, ...]


def agent_card(name: str) -> AgentCard:
    """The card of an installed agent, or of an import path.

    Raises:
        ArgumentError: if there is no such agent, or it cannot be imported.
    """
    made_by = find_agent(name)
    meanings = _meanings(made_by)
    try:
        signature: Mapping[str, inspect.Parameter] = inspect.signature(made_by).parameters
    except (TypeError, ValueError):  # some callables have none
        signature = {}
    parameters = []
    for keyword, one in signature.items():
        stars = "**" if one.kind is one.VAR_KEYWORD else "*" if one.kind is one.VAR_POSITIONAL else ""
        default = None if one.default is one.empty else repr(one.default)
        parameters.append(Parameter(f"{stars}{keyword}", default, meanings.get(keyword, "")))
    module = str(getattr(made_by, "__module__", ""))
    return AgentCard(
        name=name,
        defined_in=f"{module}:{getattr(made_by, '__qualname__', made_by)}",
        modes=modes_of(made_by),
        summary=_first_paragraph(getattr(made_by, "__doc__", None)),
        source=_first_paragraph(getattr(sys.modules.get(module), "__doc__", None)),
        parameters=tuple(parameters),
    )


def zoo_cards() -> dict[str, AgentCard]:
    """The cards of this package's agents as ``make zoo`` wrote them, for whoever lists them need not import them."""
    text = files("cbo_gym").joinpath("agents", "cards.json").read_text(encoding="utf-8")
    return {told["name"]: card_of(told) for told in json.loads(text)}


def cards_text() -> str:
    """The text of that file."""
    return json.dumps([asdict(agent_card(name)) for name in zoo()], indent=1) + "\n"


def card_of(told: Mapping[str, Any]) -> AgentCard:
    """The card that another process told as plain data."""
    texts = {name: str(told[name]) for name in ("name", "defined_in", "summary", "source")}
    parameters = (Parameter(**one) for one in told["parameters"])
    return AgentCard(**texts, modes=tuple(told["modes"]), parameters=tuple(parameters))


def _meanings(made_by: Any) -> dict[str, str]:
    """Parameter -> meaning, those of base classes where a class says nothing of its own."""
    found: dict[str, str] = {}
    for kind in reversed(made_by.__mro__ if isinstance(made_by, type) else [made_by]):
        found |= _arguments(kind.__doc__)
    return found


def _arguments(doc: str | None) -> dict[str, str]:
    """The section ``Args`` of a docstring."""
    lines = inspect.cleandoc(doc or "").splitlines()
    found: dict[str, str] = {}
    names: list[str] = []
    for line in lines[lines.index(ARGS) + 1 :] if ARGS in lines else ():
        if line and not line.startswith(" "):
            break  # the next section
        begun = ARGUMENT.fullmatch(line[4:]) if not line[4:].startswith(" ") else None
        if begun:
            names = re.findall(r"\w+", begun[1])
            found |= dict.fromkeys(names, begun[2])
        else:
            found |= {name: f"{found[name]} {line.strip()}" for name in names}
    return {name: _plain(text) for name, text in found.items()}


def _first_paragraph(doc: str | None) -> str:
    return _plain(inspect.cleandoc(doc or "").partition("\n\n")[0])


def _plain(text: str) -> str:
    """Without markup, in one line."""
    return " ".join(ROLE.sub(r"\1", text).replace("``", "").split())
