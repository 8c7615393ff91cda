"""Links to the pages of environments and agents. An agent's name is followed by marks of what it knows of the task."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cbo_gym._util.yaml import read_yaml
from cbo_gym.agent_registry.labels import Spec, bare_name
from cbo_gym.evaluation.report.markdown import escape
from cbo_gym.evaluation.store.published import package_store
from cbo_gym.referee.submission import read_card

KNOWLEDGE_FILE = Path(__file__).parent / "knowledge.yaml"
#: Facts of a task that agents may use beyond its spaces, graph and initial data: their marks and descriptions.
KNOWLEDGE = {
    "noise": ("n", "the distributions of the noise, or whether there is any"),
    "composition": ("c", "the reward as a function of the other variables"),
    "kernel": ("k", "the kernel from which the reward function is drawn"),
    "signal_family": ("s", "the family of the signals' distributions"),
    "signal_range": ("r", "an interval that holds the signals"),
    "components": ("f", "the functions that equations are made of"),
}


@cache
def knowledge() -> dict[str, list[str]]:
    """Return agent -> facts that it uses, from the file; for submitted agents from their cards."""
    cards = [read_card(path) for path in sorted(package_store().glob("*.yaml"))]
    return read_yaml(KNOWLEDGE_FILE) | {card.agent: list(card.knows) for card in cards}


def marks_note() -> str:
    """Return the meanings of the marks at agents' names."""
    marks = ", ".join(f"<sup>{mark}</sup> {meaning}" for mark, meaning in KNOWLEDGE.values())
    return f"Agents with marks know more than spaces, graph and initial data: {marks}."


@dataclass(frozen=True)
class Links:
    """The links from a page.

    Attributes:
        pages: addresses of the pages of the site; other pages are not linked.
        root: path from the page's folder to the root of the site.
    """

    pages: Collection[str] = ()
    root: str = ""

    def to(self, page: str, label: str) -> str:
        """Return a link to a page of the site with the Markdown ``label``."""
        return f"[{label}]({self.root}{page})" if page in self.pages else label

    def agent(self, label: str) -> str:
        """Return a link to an agent's page, with the marks of the agent's knowledge."""
        name = Spec.parse(label).name
        marks = "".join(f"<sup>{KNOWLEDGE[fact][0]}</sup>" for fact in knowledge().get(name, ()))
        return self.to(f"agents/{name}.md", escape(label)) + marks

    def env(self, label: str) -> str:
        """Return a link to an environment's page, without the prefix ``CBO/``."""
        label = label.removeprefix("CBO/")
        return self.to(f"environments/{bare_name(label.partition(', T=')[0])}.md", escape(label))
