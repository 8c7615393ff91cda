"""Tables of the verdicts on a paper's claims by the published runs, for the website and ``cbo-gym claims``."""

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from cbo_gym.agent_registry.labels import matches
from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.claims.judging import (
    BaseJudgement,
    Dominance,
    Judgement,
    Regret,
    Verdict,
    correct_together,
    judge,
    none_dominates,
)
from cbo_gym.evaluation.claims.papers import Exhibit, Paper
from cbo_gym.evaluation.claims.verdicts import Kind
from cbo_gym.evaluation.metrics.aggregate import MIN_SEEDS
from cbo_gym.evaluation.report.tables import MISSING
from cbo_gym.evaluation.runs.counted import newest
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.store.published import load_published, package_store
from cbo_gym.evaluation.suites import Suite, load

# Name of a file of published results -> its runs.
RunsByFile = Mapping[str, Sequence[Run]]
# File of the runs in the table of the README; verdicts do not use them.
SHOWCASE = "showcase"
# Regret by which methods are compared -> its name in the table.
METRIC_TITLES: dict[Regret, str] = {
    "average_regret": "average regret",
    "best_so_far_regret": "regret of the best action so far",
    "simple_regret": "regret of the recommendation",
    "average_pseudo_regret": "mean of mu* - y",
    "missing_gap_over_time": "1 - G_t",
}
# Columns of the table of claims.
HEADER = ("claim", "verdict", "environment", "methods", "by", "difference", "pairs", "rounds")
# Columns of the CSV that are fields of a judgement.
JUDGEMENT_COLUMNS = ("verdict", "corrected", "by", "difference", "low", "high", "p_value", "pairs", "rounds")
# Title of a table of claims -> whether its claims are ours.
CLAIM_GROUPS = {"The paper's claims": False, "Our claims": True}
VERDICTS: tuple[Verdict, ...] = ("confirmed", "refuted", "equivalent", "open", "not run")
# Words between two methods in the table, by the kind of claim.
RELATIONS: dict[Kind, str] = {"better": "over", "as good": "as good as", "equivalent": "like"}


class JudgedClaim(NamedTuple):
    """A claim about an exhibit, with its verdict.

    Attributes:
        statement: the claim in words.
        ours: whether the claim is ours rather than the paper's.
        judgement: result for two methods on an environment, or for all methods and environments.
    """

    statement: str
    ours: bool
    judgement: Judgement | Dominance


def published_parts(store: Path | None = None) -> RunsByFile:
    """Return the runs in each file of a store, by default the package's own, except the file :data:`SHOWCASE`."""
    store = store or package_store()
    files = [path for path in sorted(store.glob("*.parquet")) if path.stem != SHOWCASE]
    if not files:
        raise ArgumentError(f"{store} is not a folder with published results; give the one that cbo-gym publish wrote")
    return {path.stem: load_published(path) for path in files}


def paper_runs(paper: Paper, parts: RunsByFile) -> list[Run]:
    """Return the runs by which a paper's claims are judged, on its environments with any parameters.

    These are all runs in the paper's own file, and the runs in other files that have the paper's number of rounds.
    """
    suite = load(paper.suite)
    parts = counted_runs(suite, parts)
    same_horizon = (run for runs in parts.values() for run in runs if run.horizon == paper.rounds)
    return newest(run for run in (*same_horizon, *parts.get(paper.suite, ())) if matches(run.env, suite.environments))


def counted_runs(suite: Suite, parts: RunsByFile) -> dict[str, list[Run]]:
    """Return the runs of each file that may be used for a suite: with the seeds of its verdicts, or blind."""
    return {
        name: [run for run in runs if run.secret or suite.counts(run.seed, run.env)] for name, runs in parts.items()
    }


def judge_claims(paper: Paper, runs: Sequence[Run]) -> dict[str, list[JudgedClaim]]:
    """Judge all claims of a paper, corrected together; return the claims of each of the :data:`CLAIM_GROUPS`."""
    claims = [claim for exhibit in paper.exhibits for claim in _claims(exhibit, paper, runs)]
    corrected = correct_together([claim.judgement for claim in claims])
    claims = [claim._replace(judgement=judgement) for claim, judgement in zip(claims, corrected, strict=True)]
    return {group: [claim for claim in claims if claim.ours is ours] for group, ours in CLAIM_GROUPS.items()}


def _claims(exhibit: Exhibit, paper: Paper, runs: Sequence[Run]) -> Iterator[JudgedClaim]:
    if by := exhibit.none_dominates:
        dominance = none_dominates(exhibit.agents, exhibit.environments, by, paper.rules, runs)
        yield JudgedClaim(f"No method dominates ({exhibit.name})", True, dominance)
    for entry in exhibit.claims:
        for claim in entry.claims(paper.rules):
            for judgement in judge(claim, runs):
                yield JudgedClaim(f"{entry.statement} ({exhibit.name})", entry.ours, judgement)


def tally(claims: Sequence[JudgedClaim], show: Callable[[str], str] = str) -> str:
    """Return the number of claims with each verdict, and the number that keep it after the correction.

    Args:
        claims: Judged claims.
        show: Formats a verdict.
    """
    judgements = [claim.judgement for claim in claims]
    strings = []
    for verdict in VERDICTS:
        count = sum(judgement.verdict == verdict for judgement in judgements)
        corrected = sum(judgement.verdict == judgement.corrected == verdict for judgement in judgements)
        if count:
            strings.append(f"{count} {show(verdict)}" + (f" ({corrected} corrected)" if corrected < count else ""))
    return ", ".join(strings)


def cells(claim: JudgedClaim, agent: Callable[[str], str] = str, env: Callable[[str], str] = str) -> list[str]:
    """Return the cells of a claim's row, in the order of :data:`HEADER`.

    Args:
        claim: Judged claim.
        agent: Formats an agent's label.
        env: Formats an environment's label.
    """
    judgement = claim.judgement
    first_cells, by = [claim.statement, judgement.verdict], METRIC_TITLES[judgement.by]
    if isinstance(judgement, Dominance):
        return [*first_cells, f"all {len(judgement.envs)}", "each with each", by, MISSING, *_extent(judgement)]
    comparison = judgement.claim
    methods = f"{agent(comparison.better)} {RELATIONS[comparison.kind]} {agent(comparison.worse)}"
    if comparison.worse_env:
        methods += f" on {env(comparison.worse_env)}"
    difference = f"{judgement.difference:.3f}" if judgement.pairs else MISSING
    low, high = f"{judgement.low:.3f}", f"{judgement.high:.3f}"
    if judgement.pairs >= MIN_SEEDS and low != high:
        difference += f" [{low}, {high}]"
    extent = _extent(judgement, comparison.looks[0], comparison.after)
    return [*first_cells, env(judgement.env), methods, by, difference, *extent]


def _extent(judgement: BaseJudgement, needed: int = 0, after: int | None = None) -> list[str]:
    """Return the cells of the pairs and of the rounds, with the required number if there are fewer: ``8 of 10``."""
    if not judgement.pairs:
        return ["0", MISSING]
    pairs = str(judgement.pairs) if judgement.pairs >= needed else f"{judgement.pairs} of {needed}"
    rounds = str(judgement.rounds) if after in (None, judgement.rounds) else f"{judgement.rounds} of {after}"
    return [pairs, rounds]


def claims_csv(groups: Mapping[str, Sequence[JudgedClaim]]) -> str:
    """Return the table of claims as CSV, with unrounded numbers."""
    stream = io.StringIO()
    fields = ["claim", "group", "environment", "better", "worse", *JUDGEMENT_COLUMNS]
    writer = csv.DictWriter(stream, fields, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for group, claims in groups.items():
        for claim in claims:
            row = vars(claim.judgement) | {"claim": claim.statement, "group": group}
            if isinstance(claim.judgement, Judgement):
                methods = claim.judgement.claim
                row |= {"environment": row["env"], "better": methods.better, "worse": methods.worse}
            writer.writerow(row)
    return stream.getvalue()
