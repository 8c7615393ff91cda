"""The pages of the agents: one each, from the zoo, the docstrings, ``docs/methods`` and measured results; and an index.

A page has what the class says of itself, ``docs/methods/<name>.md`` (the paper, the method in mathematics and the
departures from the paper), the parameters with their defaults, and from ``docs/data/agents.csv`` (written by
``make agent-results``) what a round costs and where the agent wins. Nothing is kept twice.
"""

from __future__ import annotations

import csv
import inspect
import re
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

from tables import ALL, table

from cbo_gym.agent_cards import Parameter, agent_card
from cbo_gym.agents.zoo import zoo
from cbo_gym.labels import bare_name
from cbo_gym.task import Mode

DOCS = Path(__file__).parent
RESULTS = DOCS / "data" / "agents.csv"
ROLE = re.compile(r":(?:class|meth|func|mod|attr|exc|data):`~?([^`]*)`")
DEPARTURES = "## Departures from the paper"


@dataclass(frozen=True)
class Described:
    """An agent of the zoo, as its code describes it.

    Raises:
        ValueError: from the properties, where the code or ``docs/methods`` lacks what a page needs.
    """

    name: str
    path: str

    @property
    def kind(self) -> Any:
        module, _, attribute = self.path.partition(":")
        return getattr(import_module(module), attribute)

    @property
    def module(self) -> str:
        return self.path.partition(":")[0]

    @property
    def room(self) -> str:
        """The folder that it is in, which stands for a family of methods."""
        return self.module.rpartition(".")[0]

    @property
    def modes(self) -> str:
        return "all" if set(self.kind.modes) == set(Mode) else ", ".join(sorted(self.kind.modes))

    @property
    def summary(self) -> str:
        """The first paragraph of the class's docstring."""
        return self._need("docstring", _plain(inspect.cleandoc(self.kind.__doc__ or "").partition("\n\n")[0]))

    @property
    def method(self) -> str:
        """The paper, the mathematics and the departures, as Markdown with a heading each."""
        source = DOCS / "methods" / f"{self.name}.md"
        text = source.read_text(encoding="utf-8") if source.is_file() else ""
        if not text.startswith("## Paper\n") or "\n## Method\n" not in text or "$$\n" not in text:
            raise ValueError(f"{source} must have the headings Paper and Method, and the method in mathematics")
        return text

    @property
    def departures(self) -> str:
        """The last section of :attr:`method`."""
        return self._need(
            f'section "{DEPARTURES}" in docs/methods', self.method.partition(f"\n{DEPARTURES}\n")[2].strip()
        )

    @property
    def parameters(self) -> list[Parameter]:
        """The keyword arguments, in their order."""
        found = list(agent_card(self.path).parameters)
        for one in found:
            self._need(f"meaning of the parameter {one.name}", one.meaning)
        return found

    def _need(self, what: str, found: str | None) -> str:
        if not found:
            raise ValueError(f"the agent {self.name} ({self.path}) has no {what}")
        return found


def described() -> list[Described]:
    """The agents of the zoo, in its order."""
    return [Described(name, path) for name, path in zoo().items()]


def _roles(text: str) -> str:
    return ROLE.sub(r"`\1`", text).replace("``", "`")


def _plain(text: str) -> str:
    """A paragraph of a docstring in one line of Markdown."""
    return " ".join(_roles(text).split())


@dataclass(frozen=True)
class Result:
    """Results of an agent on one environment: means over seeds and half their 95 % intervals, None with one seed."""

    mode: str
    env: str
    agent: str
    score: float
    score_half: float | None
    average_score: float
    average_score_half: float | None
    seconds: float

    @property
    def id(self) -> str:
        """Of the environment, where :attr:`env` also has keywords and the number of rounds: ``CBO/Alpine2-v0``."""
        return bare_name(self._spec)

    @property
    def page(self) -> str:
        """The name of the environment's page."""
        return self.id.removeprefix("CBO/")

    @property
    def short(self) -> str:
        """With keywords: ``ToyGraph-v0(graph='hidden')``."""
        return self._spec.removeprefix("CBO/")

    @property
    def scored(self) -> str:
        """The score with half its interval."""
        return _number(self.score, self.score_half)

    @property
    def milliseconds(self) -> str:
        """Of a round."""
        return _milliseconds(self.seconds)

    @property
    def _spec(self) -> str:
        return self.env.rpartition(", T=")[0]

    @property
    def high(self) -> float:
        return self.score + (self.score_half or 0.0)

    @property
    def low(self) -> float:
        return self.score - (self.score_half or 0.0)


@cache
def results() -> list[Result]:
    """The rows of :data:`RESULTS`."""
    with RESULTS.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    texts = {"mode", "env", "agent"}
    return [
        Result(**{name: text if name in texts else float(text) if text else None for name, text in row.items()})
        for row in rows
    ]


def provenance() -> str:
    """Where the results come from: the first line of :data:`RESULTS`."""
    with RESULTS.open(encoding="utf-8") as lines:
        return next(lines).lstrip("# ").strip()


@cache
def ranking() -> dict[str, list[Result]]:
    """Environment -> its agents, from the highest score of recommendation to the lowest."""
    found: dict[str, list[Result]] = defaultdict(list)
    for result in sorted(results(), key=lambda one: -one.score):
        found[result.env].append(result)
    return dict(found)


def standing(result: Result) -> str:
    """``best``, ``5 of 8`` or ``2 of 8, level``; level is who has an interval that meets the best one's."""
    ranked = ranking()[result.env]
    place = ranked.index(result) + 1
    if place == 1:
        return "best"
    return f"{place} of {len(ranked)}{', level' if result.high >= ranked[0].low else ''}"


def pages(others: Collection[str] = ()) -> dict[str, str]:
    """Address in the site -> Markdown.

    Args:
        others: addresses of other pages; environments that have one there are linked.
    """
    return {"agents/index.md": index(), **{f"agents/{agent.name}.md": page(agent, others) for agent in described()}}


def nav() -> list[Any]:
    """The section of the site: the index, then a group for each room."""
    rooms: dict[str, list[str]] = defaultdict(list)
    for agent in described():
        rooms[agent.room].append(f"agents/{agent.name}.md")
    return ["agents/index.md", *({_title(room): members} for room, members in rooms.items())]


def _title(room: str) -> str:
    return room.rpartition(".")[2].replace("_", " ").capitalize()


def page(agent: Described, others: Collection[str] = ()) -> str:
    """The page of one agent."""
    return "\n\n".join(
        [
            f"# {agent.name}",
            agent.summary,
            _facts(agent),
            agent.method.strip(),
            "## Parameters",
            _parameters(agent),
            "## Cost and results",
            _results(agent.name, others),
            "",
        ]
    )


def _facts(agent: Described) -> str:
    quick = min((one for one in results() if one.agent == agent.name), key=lambda one: one.seconds, default=None)
    facts = [
        f"Feedback modes: {agent.modes}.",
        f"In Python `from cbo_gym.agents import {agent.kind.__name__}`; its code is in `{agent.module}`.",
    ]
    if quick:
        facts.append(f"Try it: `cbo-gym run {agent.name} {quick.id} --horizon 30`.")
    return "\n".join(f"* {fact}" for fact in facts)


def _parameters(agent: Described) -> str:
    if not agent.parameters:
        return "It has none."
    rows = [
        (f"`{one.name}`", f"`{one.default}`" if one.default else "", _plain(one.meaning)) for one in agent.parameters
    ]
    return table(["parameter", "default", "meaning"], rows, texts=ALL)


def _results(name: str, others: Collection[str]) -> str:
    own = [one for one in results() if one.agent == name]
    if not own:
        return "Not measured: it plays none of the environments of `make agent-results`."
    rows = [
        (
            _link(one, others), one.scored, standing(one), _best(one),
            _number(one.average_score, one.average_score_half), one.milliseconds,
        )
        for one in own
    ]  # fmt: skip
    header = ["environment", "score", "place", "the best", "score of play", "ms"]
    return "\n\n".join([f"{cost(name)} {wins(name)}", table(header, rows, texts=ALL), NOTE, provenance()])


def _link(result: Result, others: Collection[str]) -> str:
    name = f"`{result.short}`"
    return f"[{name}](../environments/{result.page}.md)" if f"environments/{result.page}.md" in others else name


def cost(name: str) -> str:
    """``A round costs 20 ms (10 to 50).``: the median over environments, and the range."""
    seconds = [one.seconds for one in results() if one.agent == name]
    spread = f" ({_milliseconds(min(seconds))} to {_milliseconds(max(seconds))})" if len(seconds) > 1 else ""
    return f"A round costs {_milliseconds(median(seconds))} ms{spread}."


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:,.0f}" if seconds > 0.01 else f"{1e3 * seconds:.2g}"


def wins(name: str) -> str:
    """The environments on which it has the highest score, and those on which it is level with the best."""
    best, level = wins_of(name)
    if not best and not level:
        return "It wins on none of these environments."
    parts = []
    if best:
        parts.append(f"It has the highest score on {_listed(best)}.")
    if level:
        parts.append(f"Its interval meets that of the best on {_listed(level)}.")
    return " ".join(parts)


def wins_of(name: str) -> tuple[list[Result], list[Result]]:
    """Where an agent has the highest score, and where else its interval meets that of the agent that has it."""
    own = [one for one in results() if one.agent == name]
    return (
        [one for one in own if standing(one) == "best"],
        [one for one in own if "level" in standing(one)],
    )


def _listed(found: list[Result]) -> str:
    return ", ".join(f"`{one.short}`" for one in found)


def _best(result: Result) -> str:
    first = ranking()[result.env][0]
    return "" if first.agent == result.agent else f"[{first.agent}]({first.agent}.md), {first.score:.3f}"


def _number(value: float, half: float | None) -> str:
    return f"{value:.3f}" if half is None else f"{value:.3f} ± {half:.3f}"


NOTE = (
    "Scores: 0 is the mean of a random action, 1 the optimum, ± half the 95 % t-interval over seeds; *score* is of the "
    "action recommended after 50 rounds, *score of play* of all these rounds. *Level* is an agent whose interval meets "
    "that of the best, which with few seeds says little. *ms* are milliseconds a round: act, update and recommend "
    "together."
)


def index() -> str:
    """The list of all agents, by families, and the notation of their pages."""
    parts = [(DOCS / "methods" / "index.md").read_text(encoding="utf-8").strip(), "## All agents"]
    rooms: dict[str, list[Described]] = defaultdict(list)
    for agent in described():
        rooms[agent.room].append(agent)
    header = ["agent", "modes", "what it is", "ms", "highest score on"]
    for room, members in rooms.items():
        said = _plain((import_module(room).__doc__ or "").partition("\n\n")[0])
        parts += [f"### {_title(room)}", said, table(header, map(_row, members), texts=ALL)]
    return "\n\n".join([*parts, NOTE, provenance(), ""])


def _row(agent: Described) -> list[str]:
    seconds = [one.seconds for one in results() if one.agent == agent.name]
    best = _listed(wins_of(agent.name)[0])
    cost = _milliseconds(median(seconds)) if seconds else "not measured"
    return [f"[{agent.name}]({agent.name}.md)", agent.modes, agent.summary, cost, best]
