"""The pages of the agents: one each, from the zoo, the docstrings, ``docs/methods`` and measured results; and an index.

A page has the docstring of the class, ``docs/methods/<name>.md`` (the paper, the method in mathematics and the
departures from the paper), the parameters with their defaults, and from ``docs/data/agents.csv`` (written by
``make agent-results``) the cost of a round and where the agent wins.
"""

from __future__ import annotations

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

import polars as pl
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
    def module(self) -> str:
        return self.path.partition(":")[0]

    @property
    def family(self) -> str:
        """The folder of its module, which stands for a family of methods."""
        return self.module.rpartition(".")[0]

    @property
    def kind(self) -> Any:
        return getattr(import_module(self.module), self.path.partition(":")[2])

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


def _plain(text: str) -> str:
    """A paragraph of a docstring in one line of Markdown."""
    return " ".join(ROLE.sub(r"`\1`", text).replace("``", "`").split())


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
    def short(self) -> str:
        """The environment with its keywords: ``ToyGraph-v0(graph='hidden')``."""
        return self.env.rpartition(", T=")[0].removeprefix("CBO/")

    @property
    def id(self) -> str:
        """The registered id: ``CBO/ToyGraph-v0``."""
        return f"CBO/{bare_name(self.short)}"

    @property
    def scored(self) -> str:
        """The score with half its interval."""
        return _number(self.score, self.score_half)

    @property
    def milliseconds(self) -> str:
        """Milliseconds of a round."""
        return _milliseconds(self.seconds)


@cache
def results() -> list[Result]:
    """The rows of :data:`RESULTS`."""
    rows = pl.read_csv(RESULTS, comment_prefix="#", infer_schema_length=None)
    return [Result(**row) for row in rows.iter_rows(named=True)]


def results_of(agent: str) -> list[Result]:
    return [one for one in results() if one.agent == agent]


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
    """``best``, ``5 of 8`` or ``2 of 8, level``: level if the interval meets that of the best one."""
    ranked = ranking()[result.env]
    best, rank = ranked[0], ranked.index(result) + 1
    level = result.score + (result.score_half or 0.0) >= best.score - (best.score_half or 0.0)
    return f"{rank} of {len(ranked)}{', level' if level else ''}" if rank > 1 else "best"


def pages(others: Collection[str] = ()) -> dict[str, str]:
    """Address in the site -> Markdown.

    Args:
        others: addresses of other pages; environments that have one there are linked.
    """
    return {"agents/index.md": index(), **{f"agents/{agent.name}.md": page(agent, others) for agent in described()}}


def nav() -> list[Any]:
    """The section of the site: the index, then a group for each family."""
    return ["agents/index.md", *({_title(name): [f"agents/{one.name}.md" for one in own]} for name, own in families())]


def families() -> list[tuple[str, list[Described]]]:
    """The folders of agents with their members, in the order of the zoo."""
    found: dict[str, list[Described]] = defaultdict(list)
    for agent in described():
        found[agent.family].append(agent)
    return list(found.items())


def _title(family: str) -> str:
    return family.rpartition(".")[2].replace("_", " ").capitalize()


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
    facts = [
        f"Feedback modes: {agent.modes}.",
        f"In Python `from cbo_gym.agents import {agent.kind.__name__}`; its code is in `{agent.module}`.",
    ]
    if own := results_of(agent.name):
        quickest = min(own, key=lambda one: one.seconds)
        facts.append(f"Try it: `cbo-gym run {agent.name} {quickest.id} --horizon 30`.")
    return "\n".join(f"* {fact}" for fact in facts)


def _parameters(agent: Described) -> str:
    if not agent.parameters:
        return "It has none."
    rows = [
        (f"`{one.name}`", f"`{one.default}`" if one.default else "", _plain(one.meaning)) for one in agent.parameters
    ]
    return table(["parameter", "default", "meaning"], rows, texts=ALL)


def _results(name: str, others: Collection[str]) -> str:
    own = results_of(name)
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
    return "\n\n".join([f"{_cost(own)} {_wins(own)}", table(header, rows, texts=ALL), NOTE, provenance()])


def _link(result: Result, others: Collection[str]) -> str:
    name, page = f"`{result.short}`", f"environments/{result.id.removeprefix('CBO/')}.md"
    return f"[{name}](../{page})" if page in others else name


def _cost(own: list[Result]) -> str:
    """``A round costs 20 ms (10 to 50).``: the median over environments, and the range."""
    seconds = [one.seconds for one in own]
    spread = f" ({_milliseconds(min(seconds))} to {_milliseconds(max(seconds))})" if len(seconds) > 1 else ""
    return f"A round costs {_milliseconds(median(seconds))} ms{spread}."


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:,.0f}" if seconds > 0.01 else f"{1e3 * seconds:.2g}"


def _wins(own: list[Result]) -> str:
    """The environments on which the agent has the highest score, and those on which it is level with the best."""
    sentences = {
        "It has the highest score on": _listed([one for one in own if standing(one) == "best"]),
        "Its interval meets that of the best on": _listed([one for one in own if "level" in standing(one)]),
    }
    said = " ".join(f"{sentence} {envs}." for sentence, envs in sentences.items() if envs)
    return said or "It wins on none of these environments."


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
    header = ["agent", "modes", "what it is", "ms", "highest score on"]
    for family, members in families():
        said = _plain((import_module(family).__doc__ or "").partition("\n\n")[0])
        parts += [f"### {_title(family)}", said, table(header, map(_row, members), texts=ALL)]
    return "\n\n".join([*parts, NOTE, provenance(), ""])


def _row(agent: Described) -> list[str]:
    own = results_of(agent.name)
    cost = _milliseconds(median(one.seconds for one in own)) if own else "not measured"
    best = _listed([one for one in own if standing(one) == "best"])
    return [f"[{agent.name}]({agent.name}.md)", agent.modes, agent.summary, cost, best]
