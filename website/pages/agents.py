"""The pages of the agents in the zoo, the package's registered agents, and their index.

A page has the docstring of the class, ``docs/methods/<name>.md`` (the paper, the method in mathematics and the
departures from the paper), the parameters with their defaults, and from ``docs/data/agents.csv`` (written by
``make agent-results``) the scores and the cost of a round.
"""

from collections import defaultdict
from collections.abc import Collection
from importlib import import_module
from statistics import median
from typing import Any

from website.common.agents import DocumentedAgent, documented_agents, plain
from website.common.links import Links
from website.common.markdown import ALL, image, table
from website.common.notes import note
from website.common.paths import DOCS
from website.pages.agent_results import Result, milliseconds, provenance, results


def pages(others: Collection[str] = ()) -> dict[str, str]:
    """Return address in the site -> Markdown.

    Args:
        others: addresses of other pages and pictures: environments with a page are linked, and curves shown.
    """
    links = Links(others, "../")
    of_agents = {f"agents/{agent.name}.md": page(agent, links) for agent in documented_agents()}
    return {"agents/index.md": index(), **of_agents}


def navigation() -> list[Any]:
    """Return the section of the site: the index, then a group for each family."""
    groups = [{_title(name): [f"agents/{agent.name}.md" for agent in agents]} for name, agents in families().items()]
    return ["agents/index.md", *groups]


def families() -> dict[str, list[DocumentedAgent]]:
    """Return the folders of agents with their members, in the order of the zoo."""
    members: dict[str, list[DocumentedAgent]] = defaultdict(list)
    for agent in documented_agents():
        members[agent.family].append(agent)
    return members


def _title(family: str) -> str:
    return family.rpartition(".")[2].replace("_", " ").capitalize()


def page(agent: DocumentedAgent, links: Links) -> str:
    measured = [result for result in results() if result.agent == agent.name]
    facts = [
        f"* Feedback modes: {agent.modes}.",
        f"* In Python `from cbo_gym.agents import {agent.agent_class.__name__}`; its code is in `{agent.module}`.",
    ]
    if measured:
        quickest = min(measured, key=lambda result: result.seconds)
        facts.append(f"* Try it: `cbo-gym run {agent.name} {quickest.id} --horizon 30`.")
    parts = [f"# {agent.name}", agent.summary, "\n".join(facts), "## Cost and results"]
    parts += _results(agent, measured, links)
    return "\n\n".join([*parts, agent.method.strip(), "## Parameters", _parameters(agent), ""])


def _parameters(agent: DocumentedAgent) -> str:
    if not agent.parameters:
        return "It has no parameters."
    rows = [
        (f"`{parameter.name}`", f"`{parameter.default}`" if parameter.default else "", plain(parameter.meaning))
        for parameter in agent.parameters
    ]
    return table(["parameter", "default", "meaning"], rows, left=ALL)


def _results(agent: DocumentedAgent, measured: list[Result], links: Links) -> list[str]:
    curves_part = []
    if f"agents/pictures/{agent.name}.svg" in links.pages:
        curves_part = [note("agent_curves"), image(f"pictures/{agent.name}", f"Regret of {agent.name}")]
    if not measured:
        return [*curves_part, "Not measured yet, or it plays none of the environments of `make agent-results`."]
    rows = []
    for result in measured:
        env = links.to(f"environments/{result.id.removeprefix('CBO/')}.md", f"`{result.short}`")
        rows.append([env, f"{result.score:.3f}", f"{result.average_score:.3f}", milliseconds(result.seconds)])
    header = ["environment", "score", "score of play", "ms"]
    seconds = [result.seconds for result in measured]
    spread = f" ({milliseconds(min(seconds))} to {milliseconds(max(seconds))})" if len(seconds) > 1 else ""
    cost = f"A round costs {milliseconds(median(seconds))} ms{spread}."
    return [cost, *curves_part, table(header, rows, left=ALL), note("agents"), provenance()]


def index() -> str:
    """Return the list of all agents, by families, and the notation of their pages."""
    parts = [(DOCS / "methods" / "index.md").read_text(encoding="utf-8").strip(), "## All agents"]
    header = ["agent", "modes", "summary", "ms"]
    for family, members in families().items():
        rows = []
        for agent in members:
            seconds = [result.seconds for result in results() if result.agent == agent.name]
            cost = milliseconds(median(seconds)) if seconds else "not measured"
            rows.append([f"[{agent.name}]({agent.name}.md)", agent.modes, agent.summary, cost])
        summary = plain((import_module(family).__doc__ or "").partition("\n\n")[0])
        parts += [f"### {_title(family)}", summary, table(header, rows, left=ALL)]
    return "\n\n".join([*parts, note("agents"), provenance(), ""])
