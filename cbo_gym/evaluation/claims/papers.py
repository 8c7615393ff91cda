"""Papers: their figures, tables and claims, read from the files in ``data``, for the website and ``cbo-gym claims``."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, PositiveInt, ValidationError

from cbo_gym._util.validation import StrictModel, field_errors
from cbo_gym._util.yaml import read_yaml
from cbo_gym.agent_registry.labels import Spec
from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.claims.judging import BaseClaim, Claim, NonEmptyString, Regret, Rules
from cbo_gym.evaluation.runs.results import Recommend
from cbo_gym.evaluation.suites import load_all

# Folder with a YAML file for each paper.
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
# Quantities of the recommendation.
RECOMMENDED: tuple[Quantity, ...] = ("simple_regret", "gd_plus", "igd_plus")


class ClaimEntry(BaseClaim):
    """Claims of one method over others.

    Attributes:
        statement: the claim in words.
        worse: labels of the other agents.
        ours: whether the claim is ours rather than the paper's.
        rules: rules by which it is judged; None for the paper's rules.
    """

    statement: NonEmptyString
    worse: Annotated[list[str], Field(min_length=1)]
    ours: bool = False
    rules: Rules | None = None

    def claims(self, rules: Rules) -> list[Claim]:
        """Return a claim for each other method; ``rules`` are the paper's."""
        shared = {name: getattr(self, name) for name in BaseClaim.model_fields}
        return [Claim(worse=agent, rules=self.rules or rules, **shared) for agent in self.worse]


class Exhibit(StrictModel):
    """A figure or table of a paper.

    Attributes:
        name, shows: name and description of the exhibit.
        published: its results in words, if the paper prints no numbers.
        quantity: quantity that it shows; None if it shows no numbers of runs.
        environments: labels of environments, or patterns of instances that are taken together.
        environment_names: names of the environments in table and picture; empty to show the labels.
        agents: labels of the agents.
        verbatim: labels with the paper's parameters, as in :class:`Paper`, which they replace; empty for the paper's.
        horizon: number of rounds of its runs; None for that of the suite.
        rounds: rounds after which it shows numbers; empty for the last round.
        published_numbers: agent -> printed numbers, one for each column of our table.
        claims: claims about the exhibit.
        with_choices: whether it also shows which sets were chosen, on its only environment.
        none_dominates: regret by which no method is claimed to be the best on all environments; None without this
            claim.
        picture: a picture in ``docs/pictures``, if it shows more than runs store.
        picture_command: command that draws the picture.
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
        """Environment -> its name; empty to show the labels."""
        return dict(zip(self.environments, self.environment_names, strict=True)) if self.environment_names else {}


class Paper(StrictModel):
    """The contents of a paper's page.

    Attributes:
        suite: name of the paper's suite in ``suites.yaml``, and of the page.
        short: short name of the paper in menus: the method and the authors.
        title, authors, link: title, authors and address of the paper.
        setting: the paper's experiments, and how ours differ.
        rounds, seeds: numbers of rounds and seeds in the paper.
        rules: rules by which claims without own rules are judged.
        verbatim: name of an agent -> label with the paper's parameters, if our defaults differ. They are also added to
            other labels of the agent that do not set them. The paper's claims are judged with these parameters, and a
            second time, as our claims, with the defaults.
        agents: labels of agents whose departures from the paper the page lists.
        exhibits: figures and tables, in the paper's order.
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
        """Rounds after which agents recommend in the runs: all, if an exhibit or a claim is about earlier rounds."""
        shows_recommendations = any(exhibit.rounds for exhibit in self.exhibits if exhibit.quantity in RECOMMENDED)
        claimed = any(claim.after for exhibit in self.exhibits for claim in exhibit.claims if claim.by in RECOMMENDED)
        return "every" if shows_recommendations or claimed else "powers"


@cache
def papers() -> tuple[Paper, ...]:
    """Return the papers, in the order of the suites; raise ValueError if a file is invalid."""
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
    """Return the label of an agent with the paper's parameters added, except those that it sets itself."""
    variant = Spec.parse(agent)
    if variant.name not in verbatim:
        return agent
    return str(variant.with_parameters(Spec.parse(verbatim[variant.name]).keywords | variant.keywords))


def _on_both(entry: ClaimEntry, verbatim: Mapping[str, str]) -> list[ClaimEntry]:
    """Return a claim with the paper's parameters, and as our claim with the default parameters if these differ."""
    if entry.ours:
        return [entry]
    worse = [_as_in_paper(agent, verbatim) for agent in entry.worse]
    own = entry.model_copy(update={"better": _as_in_paper(entry.better, verbatim), "worse": worse})
    return [own] if own == entry else [own, entry.model_copy(update={"ours": True})]
