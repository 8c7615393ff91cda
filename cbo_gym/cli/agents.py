"""The command agents."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from cbo_gym.agent_registry.labels import AGENTS_LISTED_BY, bare_name
from cbo_gym.cli.application import AGENT_HELP, MODE_HELP, WILDCARD_HELP, add_cwd, app
from cbo_gym.cli.completion import agent_names
from cbo_gym.cli.output import JsonOption, print_hidden, print_json, print_table
from cbo_gym.errors import EXTRA_OF, ArgumentError, CBOGymError
from cbo_gym.task import Mode

if TYPE_CHECKING:
    from cbo_gym.agent_registry.cards import AgentCard, Parameter


@app.command("agents")
def list_agents(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[AGENT]...",
            help=f"Show all details of these. {AGENT_HELP}{WILDCARD_HELP}",
            autocompletion=agent_names,
            callback=add_cwd,
        ),
    ] = None,
    mode: Annotated[Mode | None, typer.Option(metavar="MODE", help=MODE_HELP)] = None,
    as_json: JsonOption = False,
) -> None:
    """List the agents with their modes and parameters; name some for all details.

    Example: [b]cbo-gym agents GP-UCB MCBO[/b]
    """
    cards = [card for card in _cards(names or ["*"]) if mode is None or mode in card.modes]
    if not cards:
        raise ArgumentError(f"no such agent plays {mode} tasks")
    if as_json:
        print_json([asdict(card) for card in cards])
    elif names:
        for card in cards:
            rows = [["plays", _modes(card)], ["source", card.source], ["defined in", card.defined_in]]
            rows += [[_signature(parameter), parameter.meaning] for parameter in card.parameters]
            print_table("", ["", ""], [[card.name, card.summary], *rows, ["", ""]])
    else:
        rows = [
            [
                card.name,
                _modes(card),
                ", ".join(map(_signature, card.parameters)),
                card.summary.partition(". ")[0].rstrip("."),
            ]
            for card in cards
        ]
        header = ["agent", "plays", "parameters", "method"]
        print_hidden(
            print_table("", header, rows, droppable=["method"]), "cbo-gym agents AGENT shows all details of one"
        )


def _cards(names: list[str]) -> list[AgentCard]:
    """Return the cards of agents. Warn of an agent that matches a pattern and cannot be imported, and leave it out.

    Agents of other packages are imported in separate processes.
    """
    from cbo_gym.agent_registry.cards import agent_card, zoo_cards
    from cbo_gym.agent_registry.finding import known_agents, require_unshared
    from cbo_gym.agent_registry.labels import expand
    from cbo_gym.agent_registry.zoo import zoo
    from cbo_gym.evaluation.play.players import LISTING_SECONDS, MAKING_SECONDS
    from cbo_gym.referee.isolated import isolated_card

    libraries = [name for name, extra in EXTRA_OF.items() if extra in ("agents", "sb3", "optuna", "discovery")]
    # If a library is missing, each agent is imported, so that the error names its extra.
    cached_cards = zoo_cards() if all(map(find_spec, libraries)) else {}
    cards = []
    for name in expand(names, known_agents(), AGENTS_LISTED_BY):
        try:
            bare = bare_name(name)
            if bare in zoo():
                require_unshared(bare)
                cards.append(cached_cards[bare] if bare in cached_cards else agent_card(bare))
            else:
                cards.append(isolated_card(bare, MAKING_SECONDS if name in names else LISTING_SECONDS))
        except CBOGymError as error:
            if name in names:
                raise
            warnings.warn(f"left out: {error}", stacklevel=2)
    return cards


def _modes(card: AgentCard) -> str:
    return "all" if set(card.modes) == set(Mode) else ", ".join(card.modes)


def _signature(parameter: Parameter) -> str:
    return parameter.name if parameter.default is None else f"{parameter.name}={parameter.default}"
