"""The documentation of the agents of the zoo, from their code and from ``docs/methods``."""

import inspect
import re
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any

from cbo_gym.agent_registry.cards import Parameter, agent_card
from cbo_gym.agent_registry.zoo import zoo
from cbo_gym.task import Mode
from website.common.paths import DOCS

ROLE = re.compile(r":(?:class|meth|func|mod|attr|exc|data):`~?([^`]*)`")
DEPARTURES = "## Departures from the paper"


@dataclass(frozen=True)
class DocumentedAgent:
    """The documentation of an agent of the zoo, from its code.

    Raises:
        ValueError: by the properties, if the code or ``docs/methods`` lacks a part of the page.
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
        return resolve_name(self.path)

    @property
    def modes(self) -> str:
        return "all" if set(self.agent_class.modes) == set(Mode) else ", ".join(sorted(self.agent_class.modes))

    @property
    def summary(self) -> str:
        """The first paragraph of the class's docstring."""
        return self._need("docstring", plain(inspect.cleandoc(self.agent_class.__doc__ or "").partition("\n\n")[0]))

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
        section = self.method.partition(f"\n{DEPARTURES}\n")[2].strip()
        return self._need(f'section "{DEPARTURES}" in docs/methods', section)

    @property
    def parameters(self) -> list[Parameter]:
        """The keyword arguments, in their order."""
        parameters = list(agent_card(self.path).parameters)
        for parameter in parameters:
            self._need(f"meaning of the parameter {parameter.name}", parameter.meaning)
        return parameters

    def _need(self, noun: str, value: str | None) -> str:
        if not value:
            raise ValueError(f"the agent {self.name} ({self.path}) has no {noun}")
        return value


def documented_agents() -> list[DocumentedAgent]:
    """Return the agents of the zoo, in its order."""
    return [DocumentedAgent(name, path) for name, path in zoo().items()]


def plain(doc: str) -> str:
    """Return a paragraph of a docstring in one line of Markdown."""
    return " ".join(ROLE.sub(r"`\1`", doc).replace("``", "`").split())
