"""The pages of the agents, from the zoo, the docstrings, ``docs/methods`` and measured results; and an index.

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
from statistics import median
from typing import Any

import polars as pl

from cbo_gym.agent_registry.cards import Parameter, agent_card
from cbo_gym.agent_registry.labels import bare_name
from cbo_gym.agent_registry.zoo import zoo
from cbo_gym.task import Mode
from website.common.paths import DOCS
from website.common.tables import ALL, table

RESULTS = DOCS / "data" / "agents.csv"
ROLE = re.compile(r":(?:class|meth|func|mod|attr|exc|data):`~?([^`]*)`")
DEPARTURES = "## Departures from the paper"


@dataclass(frozen=True)
class DocumentedAgent:
    """The documentation of an agent of the zoo, from its code.

    Raises:
        ValueError: from the properties, where the code or ``docs/methods`` lacks a part of the page.
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
    def agent_class(self) -> Any:
        return getattr(import_module(self.module), self.path.partition(":")[2])

    @property
    def modes(self) -> str:
        return "all" if set(self.agent_class.modes) == set(Mode) else ", ".join(sorted(self.agent_class.modes))

    @property
    def summary(self) -> str:
        """The first paragraph of the class's docstring."""
        return self._need("docstring", _plain(inspect.cleandoc(self.agent_class.__doc__ or "").partition("\n\n")[0]))

    @property
    def method(self) -> str:
        """The paper, the mathematics and the departures, as Markdown with a heading each."""
        source = DOCS / "methods" / f"{self.name}.md"
        markdown = source.read_text(encoding="utf-8") if source.is_file() else ""
        if not markdown.startswith("## Paper\n") or "\n## Method\n" not in markdown or "$$\n" not in markdown:
            raise ValueError(f"{source} must have the headings Paper and Method, and the method in mathematics")
        return markdown

    @property
    def departures(self) -> str:
        """The last section of :attr:`method`."""
        return self._need(
            f'section "{DEPARTURES}" in docs/methods', self.method.partition(f"\n{DEPARTURES}\n")[2].strip()
        )

    @property
    def parameters(self) -> list[Parameter]:
        """The keyword arguments, in their order."""
        parameters = list(agent_card(self.path).parameters)
        for parameter in parameters:
            self._need(f"meaning of the parameter {parameter.name}", parameter.meaning)
        return parameters

    def _need(self, what: str, value: str | None) -> str:
        if not value:
            raise ValueError(f"the agent {self.name} ({self.path}) has no {what}")
        return value


def documented_agents() -> list[DocumentedAgent]:
    """The agents of the zoo, in its order."""
    return [DocumentedAgent(name, path) for name, path in zoo().items()]


def _plain(doc: str) -> str:
    """A paragraph of a docstring in one line of Markdown."""
    return " ".join(ROLE.sub(r"`\1`", doc).replace("``", "`").split())


@dataclass(frozen=True)
class Result:
    """Results of an agent on an environment: means over seeds and half their 95 % intervals (None with one seed)."""

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
    def score_cell(self) -> str:
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
    return [result for result in results() if result.agent == agent]


def provenance() -> str:
    """Return the source of the results: the first line of :data:`RESULTS`."""
    with RESULTS.open(encoding="utf-8") as lines:
        return next(lines).lstrip("# ").strip()


@cache
def ranking() -> dict[str, list[Result]]:
    """Environment -> its agents, from the highest score of recommendation to the lowest."""
    ranked: dict[str, list[Result]] = defaultdict(list)
    for result in sorted(results(), key=lambda result: -result.score):
        ranked[result.env].append(result)
    return dict(ranked)


def standing(result: Result) -> str:
    """``best``, ``5 of 8`` or ``2 of 8, level``: level if the interval meets that of the best agent."""
    ranked = ranking()[result.env]
    best, rank = ranked[0], ranked.index(result) + 1
    level = result.score + (result.score_half or 0.0) >= best.score - (best.score_half or 0.0)
    return f"{rank} of {len(ranked)}{', level' if level else ''}" if rank > 1 else "best"


def pages(others: Collection[str] = ()) -> dict[str, str]:
    """Address in the site -> Markdown.

    Args:
        others: addresses of other pages; environments with a page are linked.
    """
    return {
        "agents/index.md": index(),
        **{f"agents/{agent.name}.md": page(agent, others) for agent in documented_agents()},
    }


def nav() -> list[Any]:
    """The section of the site: the index, then a group for each family."""
    return [
        "agents/index.md",
        *({_title(name): [f"agents/{agent.name}.md" for agent in own]} for name, own in families()),
    ]


def families() -> list[tuple[str, list[DocumentedAgent]]]:
    """The folders of agents with their members, in the order of the zoo."""
    members: dict[str, list[DocumentedAgent]] = defaultdict(list)
    for agent in documented_agents():
        members[agent.family].append(agent)
    return list(members.items())


def _title(family: str) -> str:
    return family.rpartition(".")[2].replace("_", " ").capitalize()


def page(agent: DocumentedAgent, others: Collection[str] = ()) -> str:
    """Return the page of an agent."""
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


def _facts(agent: DocumentedAgent) -> str:
    facts = [
        f"Feedback modes: {agent.modes}.",
        f"In Python `from cbo_gym.agents import {agent.agent_class.__name__}`; its code is in `{agent.module}`.",
    ]
    if own := results_of(agent.name):
        quickest = min(own, key=lambda result: result.seconds)
        facts.append(f"Try it: `cbo-gym run {agent.name} {quickest.id} --horizon 30`.")
    return "\n".join(f"* {fact}" for fact in facts)


def _parameters(agent: DocumentedAgent) -> str:
    if not agent.parameters:
        return "It has no parameters."
    rows = [
        (f"`{parameter.name}`", f"`{parameter.default}`" if parameter.default else "", _plain(parameter.meaning))
        for parameter in agent.parameters
    ]
    return table(["parameter", "default", "meaning"], rows, left=ALL)


def _results(name: str, others: Collection[str]) -> str:
    own = results_of(name)
    if not own:
        return "Not measured: it plays none of the environments of `make agent-results`."
    rows = [
        (
            _link(result, others), result.score_cell, standing(result), _best(result),
            _number(result.average_score, result.average_score_half), result.milliseconds,
        )
        for result in own
    ]  # fmt: skip
    header = ["environment", "score", "rank", "the best", "score of play", "ms"]
    return "\n\n".join([f"{_cost(own)} {_wins(own)}", table(header, rows, left=ALL), NOTE, provenance()])


def _link(result: Result, others: Collection[str]) -> str:
    name, page = f"`{result.short}`", f"environments/{result.id.removeprefix('CBO/')}.md"
    return f"[{name}](../{page})" if page in others else name


def _cost(own: list[Result]) -> str:
    """``A round costs 20 ms (10 to 50).``: the median over environments, and the range."""
    seconds = [result.seconds for result in own]
    spread = f" ({_milliseconds(min(seconds))} to {_milliseconds(max(seconds))})" if len(seconds) > 1 else ""
    return f"A round costs {_milliseconds(median(seconds))} ms{spread}."


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:,.0f}" if seconds > 0.01 else f"{1e3 * seconds:.2g}"


def _wins(own: list[Result]) -> str:
    """The environments on which the agent has the highest score, and those on which it is level with the best."""
    sentences = {
        "It has the highest score on": _join_envs([result for result in own if standing(result) == "best"]),
        "Its interval meets that of the best on": _join_envs([result for result in own if "level" in standing(result)]),
    }
    summary = " ".join(f"{sentence} {envs}." for sentence, envs in sentences.items() if envs)
    return summary or "It wins on none of these environments."


def _join_envs(results: list[Result]) -> str:
    return ", ".join(f"`{result.short}`" for result in results)


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
    header = ["agent", "modes", "summary", "ms", "highest score on"]
    for family, members in families():
        summary = _plain((import_module(family).__doc__ or "").partition("\n\n")[0])
        parts += [f"### {_title(family)}", summary, table(header, map(_row, members), left=ALL)]
    return "\n\n".join([*parts, NOTE, provenance(), ""])


def _row(agent: DocumentedAgent) -> list[str]:
    own = results_of(agent.name)
    cost = _milliseconds(median(result.seconds for result in own)) if own else "not measured"
    best = _join_envs([result for result in own if standing(result) == "best"])
    return [f"[{agent.name}]({agent.name}.md)", agent.modes, agent.summary, cost, best]
