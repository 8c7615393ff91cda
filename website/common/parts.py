"""Parts of the pages of results: links with marks of agents' knowledge, lists, pictures, and the runs that count."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from cbo_gym._util.yaml import read_yaml
from cbo_gym.agent_registry.labels import Spec, matches
from cbo_gym.evaluation.report.markdown import escape
from cbo_gym.evaluation.runs.counted import newest
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.seed_ranges import PUBLICATION
from cbo_gym.evaluation.store.published import own_store
from cbo_gym.evaluation.suites import Suite, load
from cbo_gym.referee.submission import read_card
from website.pages.pictures import dark
from website.papers.contents import Paper

KNOWLEDGE_FILE = Path(__file__).parent / "knowledge.yaml"
LEAST_SEEDS = 5
MAX_LISTED = 12
#: facts that agents may know beyond spaces, graph and initial data: their marks and descriptions
KNOWLEDGE = {
    "noise": ("n", "the distributions of the noise, or whether there is any"),
    "composition": ("c", "the reward as a function of the other variables"),
    "kernel": ("k", "the kernel from which the reward function is drawn"),
    "signal_family": ("s", "the family of the signals' distributions"),
    "signal_range": ("r", "an interval that holds the signals"),
    "components": ("f", "the functions that equations are made of"),
}
CLOCK_NOTE = (
    "Times are by the clock, mostly with other runs on the machine's other cores: compare them as ratios, and within "
    "a page only."
)
TARGETS_NOTE = (
    "The share of runs whose best action so far had the score, each environment counting alike, against rounds and "
    f"against the agent's own seconds, of which every round counts the run's mean. {CLOCK_NOTE}"
)


@cache
def knowledge() -> dict[str, list[str]]:
    """Agent -> the facts that it uses; of submitted agents from their cards."""
    cards = [read_card(path) for path in sorted(own_store().glob("*.yaml"))]
    return read_yaml(KNOWLEDGE_FILE) | {card.agent: list(card.told) for card in cards}


def agent_link(label: str, root: str, others: Collection[str]) -> str:
    """The label, linked to the agent's page, with the marks of its knowledge."""
    name = Spec.parse(label).name
    shown = escape(label)
    linked = f"[{shown}]({root}agents/{name}.md)" if f"agents/{name}.md" in others else shown
    marks = "".join(f"<sup>{KNOWLEDGE[fact][0]}</sup>" for fact in knowledge().get(name, ()))
    return f"{linked}{marks}"


def env_link(label: str, root: str, others: Collection[str]) -> str:
    """The environment without the prefix ``CBO/``, linked to its page."""
    page = f"environments/{label.partition(', T=')[0].partition('(')[0].removeprefix('CBO/')}.md"
    name = escape(label.removeprefix("CBO/"))
    return f"[{name}]({root}{page})" if page in others else name


def marks_note() -> str:
    """The meanings of the marks at agents' names."""
    marks = ", ".join(f"<sup>{mark}</sup> {meaning}" for mark, meaning in KNOWLEDGE.values())
    return f"Agents with marks know more than spaces, graph and initial data: {marks}."


def fold(summary: str, markdown: str) -> str:
    """Return a summary that opens a part of the page."""
    return f"<details markdown>\n<summary>{summary}</summary>\n\n{markdown}\n\n</details>"


def pairs_of(name: str, labels: Sequence[str]) -> str:
    shown = ", ".join(label.removeprefix("CBO/") for label in labels[:MAX_LISTED])
    more = f" and {len(labels) - MAX_LISTED} more" if len(labels) > MAX_LISTED else ""
    return f"{escape(name)} on {escape(shown)}{more}"


def group_labels(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    labels: dict[str, list[str]] = defaultdict(list)
    for name, label in pairs:
        labels[name].append(label)
    return labels


def counted_runs(suite: Suite, parts: Mapping[str, Sequence[Run]]) -> dict[str, list[Run]]:
    """Of each file the runs that count for a suite: on the seeds of its verdicts, or blind."""
    return {name: [run for run in runs if run.secret or suite.takes(run.seed, run.env)] for name, runs in parts.items()}


def own_runs(paper: Paper, parts: Mapping[str, Sequence[Run]]) -> list[Run]:
    """Runs on the paper's environments, with any keywords: those with its rounds, and all of its own file."""
    suite = load(paper.suite)
    parts = counted_runs(suite, parts)
    of_any = (run for runs in parts.values() for run in runs if run.horizon == paper.rounds)
    return newest(run for run in (*of_any, *parts.get(paper.suite, ())) if matches(run.env, suite.environments))


def targets_path(suite: Suite, mode: str) -> str:
    """The path, without its ending, of the picture of how soon a suite's runs reached scores."""
    return f"papers/pictures/targets-{suite.name}-{mode}"


def light_and_dark(path: str, svg: str) -> dict[str, str]:
    """Address -> a picture for light pages, and one for dark ones; the path is without its ending."""
    return {f"{path}.svg": svg, f"{path}-dark.svg": dark(svg)}


def image(path: str, alt: str) -> str:
    """Markdown that shows a picture on light pages and on dark ones; the path is without its ending."""
    return f"![{alt}]({path}.svg#only-light)![{alt}]({path}-dark.svg#only-dark)"


def seeds_note(suite: Suite) -> str:
    """The seeds of verdicts and tables, and whether defaults may have been chosen on them."""
    seeds = f"seeds and instances {suite.first_seed} to {PUBLICATION.stop - 1}"
    if suite.verdict_seeds == "publication":
        return f"Judged on {seeds}, which are for publication alone: no default was chosen on them."
    return (
        "Judged on seeds and instances that were not kept for publication: some of them may have chosen defaults that "
        f"are judged here. Results on {seeds}, which chose nothing, will replace them."
    )


def sweep_command(suite: Suite) -> str:
    return f"cbo-gym sweep runs/{suite.name} --suite {suite.name} -a '*'"
