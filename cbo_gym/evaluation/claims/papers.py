"""The figures, tables and claims of the papers, from the files in ``data``."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, PositiveInt, ValidationError

from cbo_gym._util.validation import StrictModel, field_errors
from cbo_gym._util.yaml import read_yaml
from cbo_gym.agent_registry.labels import Spec
from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.claims.judging import Claim, Comparison, NonEmptyString, Regret, Rules
from cbo_gym.evaluation.runs.results import Recommend
from cbo_gym.evaluation.suites import load_all

#: A YAML file for each paper.
DATA = Path(__file__).parent / "data"
Quantity = Literal[
    "average_reward",
    "best_reward",
    "average_regret",
    "simple_regret",
    "average_pseudo_regret",
    "run_seconds",
    "run_minutes",
    "gap_over_time",
    "feasible_share",
    "lacking",
    "best_so_far_regret",
    "gd_plus",
    "igd_plus",
]
#: Quantities of the recommendation.
RECOMMENDED: tuple[Quantity, ...] = ("simple_regret", "gd_plus", "igd_plus")


class ClaimEntry(Comparison):
    """A claim of one method over others, the paper's or ours; ``rules`` is None for the paper's rules."""

    statement: NonEmptyString
    worse: Annotated[list[str], Field(min_length=1)]
    ours: bool = False
    rules: Rules | None = None

    def claims(self, rules: Rules) -> list[Claim]:
        """Return a claim for each other method, by the entry's own rules if it has any."""
        same = {name: getattr(self, name) for name in Comparison.model_fields}
        return [Claim(worse=agent, rules=self.rules or rules, **same) for agent in self.worse]


class Exhibit(StrictModel):
    """A figure or table of a paper.

    Attributes:
        name, shows: its name and description.
        published: the results in words, if there are no numbers.
        quantity: the quantity that it shows.
        environments: labels, or patterns of instances that are taken together.
        environment_names: names of the environments in table and picture; empty for the labels.
        agents: labels of the agents.
        verbatim: see :class:`Paper`; replaces the paper's.
        horizon: rounds of its runs, if they are not those of the suite.
        rounds: the rounds after which it shows numbers; empty for the last.
        published_numbers: printed numbers, agent -> one for each column of our table.
        claims: claims about it.
        with_choices: whether it also shows the choices, on its one environment.
        none_dominates: regret by which no method is the best on all of the environments; None without this claim.
        picture: a picture in ``docs/pictures``, if it shows more than runs store.
        picture_command: the command that draws it.
    """

    name: NonEmptyString
    shows: NonEmptyString
    published: str = ""
    quantity: Quantity | None = None
    environments: list[str] = []
    environment_names: list[str] = []
    agents: list[str] = []
    verbatim: dict[str, str] = {}
    horizon: PositiveInt | None = None
    rounds: list[int] = []
    published_numbers: dict[str, list[str]] = {}
    claims: list[ClaimEntry] = []
    with_choices: bool = False
    none_dominates: Regret | None = None
    picture: str = ""
    picture_command: str = ""

    @property
    def names(self) -> dict[str, str]:
        """Environment -> its name, if it is not the label."""
        return dict(zip(self.environments, self.environment_names, strict=True)) if self.environment_names else {}


class Paper(StrictModel):
    """The contents of a paper's page.

    Attributes:
        suite: name of the paper's suite in ``suites.yaml``, and of the page.
        short: the method and the authors, as navigation names the paper.
        title, authors, link: title, authors and address of the paper.
        setting: the paper's experiments, and the differences of ours.
        rounds, seeds: numbers of rounds and seeds in the paper.
        rules: rules by which its claims are judged.
        verbatim: name of an agent -> label with the paper's parameters, if our defaults are others; variants of the
            agent have these too, unless their labels set them. The paper's claims are judged with these parameters,
            and a second time, as our claims, with the defaults.
        agents: labels whose departures the page lists.
        exhibits: in the paper's order.
    """

    suite: NonEmptyString
    short: NonEmptyString
    title: NonEmptyString
    authors: NonEmptyString
    link: str = ""
    setting: NonEmptyString
    rounds: int
    seeds: int
    rules: Rules = Rules()
    verbatim: dict[str, str] = {}
    agents: Annotated[list[str], Field(min_length=1)]
    exhibits: Annotated[list[Exhibit], Field(min_length=1)]

    @property
    def page(self) -> str:
        return f"papers/{self.suite}.md"

    @property
    def recommend(self) -> Recommend:
        """How often agents recommend in its runs: each round, if earlier recommendations are shown or claimed."""
        shows_recommendations = any(exhibit.rounds for exhibit in self.exhibits if exhibit.quantity in RECOMMENDED)
        claimed = any(claim.after for exhibit in self.exhibits for claim in exhibit.claims if claim.by in RECOMMENDED)
        return "every" if shows_recommendations or claimed else "powers"


@cache
def papers() -> tuple[Paper, ...]:
    """Return the papers, in the order of the suites.

    Raises:
        ValueError: if a file is wrong.
    """
    order = [suite.name for suite in load_all()]
    contents = [_paper(path) for path in sorted(DATA.glob("*.yaml"))]
    return tuple(sorted(contents, key=lambda paper: order.index(paper.suite)))


def _paper(path: Path) -> Paper:
    try:
        return _with_verbatim(Paper.model_validate(read_yaml(path)))
    except ValidationError as error:
        raise ValueError(f"{path}: {field_errors(error, Paper)}") from error
    except ArgumentError as error:
        raise ValueError(f"{path}: {error}") from error


def _with_verbatim(paper: Paper) -> Paper:
    """Add the paper's settings of methods to the agents, and its claims on these and on the defaults."""
    exhibits = []
    for exhibit in paper.exhibits:
        own = exhibit.verbatim or paper.verbatim
        claims = [claim for entry in exhibit.claims for claim in _on_both(entry, own)]
        agents = list(dict.fromkeys(label for agent in exhibit.agents for label in (agent, _as_in_paper(agent, own))))
        exhibits.append(exhibit.model_copy(update={"agents": agents, "claims": claims}))
    return paper.model_copy(update={"exhibits": exhibits})


def _as_in_paper(agent: str, verbatim: Mapping[str, str]) -> str:
    """Return an agent with the paper's parameters, except for those that its label sets."""
    variant = Spec.parse(agent)
    if variant.name not in verbatim:
        return agent
    merged = {**Spec.parse(verbatim[variant.name]).keywords, **variant.keywords}
    return str(Spec(variant.name, tuple(sorted(merged.items()))))


def _on_both(entry: ClaimEntry, verbatim: Mapping[str, str]) -> list[ClaimEntry]:
    """Return a paper's claim with the paper's settings, and as our claim with the defaults if these differ."""
    if entry.ours:
        return [entry]
    worse = [_as_in_paper(agent, verbatim) for agent in entry.worse]
    own = entry.model_copy(update={"better": _as_in_paper(entry.better, verbatim), "worse": worse})
    return [own] if own == entry else [own, entry.model_copy(update={"ours": True})]
