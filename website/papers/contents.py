"""The contents of the papers' pages from ``docs/papers``: their figures, tables and claims."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, PositiveInt, ValidationError

from cbo_gym._util.validation import StrictModel, field_errors
from cbo_gym._util.yaml import read_yaml
from cbo_gym.agent_registry.labels import Spec
from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.metrics.gap import mean_slice_gap
from cbo_gym.evaluation.runs.results import Recommend, Run
from cbo_gym.evaluation.suites import load_all
from website.common.paths import DOCS
from website.papers.claims import Claim, Comparison, NonEmptyString, Regret, Rules
from website.papers.figures import curve_of

QUANTITIES = {
    "average_reward": "Average expected reward over the rounds so far",
    "best_reward": "Best expected reward of the actions so far",
    "average_regret": "Average regret over the rounds so far",
    "simple_regret": "Regret of the recommended action",
    "average_pseudo_regret": "Mean of mu\\* - y over the rounds so far",
    "run_seconds": "Seconds of a run",
    "run_minutes": "Minutes of a run",
    "gap_over_time": "G_t, mean over the slices",
    "feasible_share": "Share of rounds with a feasible action",
    "lacking": "Regret of the best feasible action, 1 for a random one",
    "best_so_far_regret": "Regret of the best so far",
    "gd_plus": "GD+ of the recommendation",
    "igd_plus": "IGD+ of the recommendation",
}
Quantity = Literal[tuple(QUANTITIES)]
#: Quantities by the clock.
TIMES: tuple[Quantity, ...] = ("run_seconds", "run_minutes")


def run_seconds(run: Run) -> float:
    """Return the seconds that the agent takes."""
    return run.reset_seconds + run.seconds_a_round * run.horizon


#: Quantities of the recommendation.
RECOMMENDED: tuple[Quantity, ...] = ("simple_regret", "gd_plus", "igd_plus")
#: Numbers of whole runs, which have no curve.
NUMBERS: dict[Quantity, Callable[[Run], float]] = {
    "run_seconds": run_seconds,
    "run_minutes": lambda run: run_seconds(run) / 60.0,
    "gap_over_time": mean_slice_gap,
    "feasible_share": lambda run: float(np.mean(run.table["feasible"].to_numpy())),
    "lacking": lambda run: float(run.table["best_so_far_regret"][-1]) / (run.optimum - run.random_value),
}


def quantity_of(run: Run, quantity: Quantity, after: int) -> float:
    """Return the quantity of a figure for one run after a number of rounds; NaN without a recommendation there."""
    return NUMBERS[quantity](run) if quantity in NUMBERS else float(curve_of(run, quantity)[after - 1])


class ClaimEntry(Comparison):
    """A claim of one method over others, the paper's or ours; ``rules`` is None for the paper's rules."""

    said: NonEmptyString
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
        called: names of the environments in table and picture; empty for the labels.
        agents: labels of the agents.
        verbatim: see :class:`Paper`; replaces the paper's.
        horizon: rounds of its runs, if they are not those of the suite.
        rounds: the rounds after which it shows numbers; empty for the last.
        theirs: printed numbers, agent -> one for each column of our table.
        claims: claims about it.
        chosen: whether it also shows the choices, on its one environment.
        none_dominates: that no method is the best on all of the environments, by this regret.
        drawn: a picture in ``docs/pictures``, if it shows more than runs store.
        drawn_by: the command that draws it.
    """

    name: NonEmptyString
    shows: NonEmptyString
    published: str = ""
    quantity: Quantity | None = None
    environments: list[str] = []
    called: list[str] = []
    agents: list[str] = []
    verbatim: dict[str, str] = {}
    horizon: PositiveInt | None = None
    rounds: list[int] = []
    theirs: dict[str, list[str]] = {}
    claims: list[ClaimEntry] = []
    chosen: bool = False
    none_dominates: Regret | None = None
    drawn: str = ""
    drawn_by: str = ""

    @property
    def names(self) -> dict[str, str]:
        """Environment -> its name, if it is not the label."""
        return dict(zip(self.environments, self.called, strict=True)) if self.called else {}


class Paper(StrictModel):
    """The contents of a paper's page.

    Attributes:
        suite: of ``suites.yaml``, whose name the page has.
        short: the method and the authors, as navigation names the paper.
        title, authors, link: of the paper.
        setting: the paper's experiments, and the differences of ours.
        rounds, seeds: of the paper.
        rules: how its claims are judged.
        verbatim: label of an agent -> label with the paper's parameters, if our defaults are others; variants of the
            agent have these too, unless they set them. The paper's claims are judged on the latter, and a second
            time, as claims of ours, on the defaults.
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
        shown = any(exhibit.rounds for exhibit in self.exhibits if exhibit.quantity in RECOMMENDED)
        claimed = any(claim.after for exhibit in self.exhibits for claim in exhibit.claims if claim.by in RECOMMENDED)
        return "every" if shown or claimed else "powers"


@cache
def papers() -> tuple[Paper, ...]:
    """Return the papers of ``docs/papers``, in the order of the suites.

    Raises:
        ValueError: if a file is wrong.
    """
    order = [suite.name for suite in load_all()]
    contents = [_paper(path) for path in sorted((DOCS / "papers").glob("*.yaml"))]
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
        agents = list(dict.fromkeys(label for agent in exhibit.agents for label in (agent, _own(agent, own))))
        exhibits.append(exhibit.model_copy(update={"agents": agents, "claims": claims}))
    return paper.model_copy(update={"exhibits": exhibits})


def _own(agent: str, verbatim: Mapping[str, str]) -> str:
    """Return an agent with the paper's parameters, except for those that its label sets."""
    variant = Spec.parse(agent)
    if variant.name not in verbatim:
        return agent
    merged = {**Spec.parse(verbatim[variant.name]).keywords, **variant.keywords}
    return str(Spec(variant.name, tuple(sorted(merged.items()))))


def _on_both(entry: ClaimEntry, verbatim: Mapping[str, str]) -> list[ClaimEntry]:
    """Return a paper's claim on the paper's settings, and as one of ours on the defaults if these differ."""
    if entry.ours:
        return [entry]
    worse = [_own(agent, verbatim) for agent in entry.worse]
    own = entry.model_copy(update={"better": _own(entry.better, verbatim), "worse": worse})
    return [own] if own == entry else [own, entry.model_copy(update={"ours": True})]
