"""The verdicts on the claims of a paper by the published runs, as the pages of the site and ``cbo-gym claims`` show."""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from cbo_gym.agent_registry.labels import matches
from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.claims.judging import (
    Dominance,
    Judged,
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
# File of the runs in the README's table, which no verdict uses.
SHOWCASE = "showcase"
# Column "by" of the table: the metric in which methods are compared.
METRIC_TITLES: dict[Regret, str] = {
    "average_regret": "average regret",
    "best_so_far_regret": "regret of the best action so far",
    "simple_regret": "regret of the recommendation",
    "average_pseudo_regret": "mean of mu* - y",
    "missing_gap_over_time": "1 - G_t",
}
HEADER = ("claim", "verdict", "environment", "methods", "by", "difference", "pairs", "rounds")
#: Columns of the CSV that are fields of a judgement.
JUDGEMENT_COLUMNS = ("verdict", "corrected", "by", "difference", "low", "high", "p_value", "pairs", "rounds")
#: Title of a table of claims -> whether its claims are ours.
CLAIM_GROUPS = {"The paper's claims": False, "Our claims": True}
VERDICTS: tuple[Verdict, ...] = ("confirmed", "refuted", "equivalent", "open", "not run")
# Words between two methods in the table, by the kind of claim.
RELATIONS: dict[Kind, str] = {"better": "over", "as good": "as good as", "equivalent": "like"}


class JudgedClaim(NamedTuple):
    """A claim about an exhibit, with its verdict.

    Attributes:
        statement: the claim in words.
        ours: whether the claim is ours rather than the paper's.
        judgement: verdict on two methods in one environment, or on all methods and environments.
    """

    statement: str
    ours: bool
    judgement: Judgement | Dominance


def published_parts(store: Path | None = None) -> RunsByFile:
    """Return the runs of a store, the package's own by default, by the names of its files; without the showcase.

    Raises:
        ArgumentError: if there is no such folder, or it has no published results.
    """
    store = store or package_store()
    files = [path for path in sorted(store.glob("*.parquet")) if path.stem != SHOWCASE]
    if not files:
        raise ArgumentError(f"{store} is not a folder with published results; give the one that cbo-gym publish wrote")
    return {path.stem: load_published(path) for path in files}


def paper_runs(paper: Paper, parts: RunsByFile) -> list[Run]:
    """Return the runs that count for a paper's claims, on its environments with any parameters.

    They are the runs in the paper's own file, and runs of the paper's number of rounds in the other files.
    """
    suite = load(paper.suite)
    parts = counted_runs(suite, parts)
    same_horizon = (run for runs in parts.values() for run in runs if run.horizon == paper.rounds)
    return newest(run for run in (*same_horizon, *parts.get(paper.suite, ())) if matches(run.env, suite.environments))


def counted_runs(suite: Suite, parts: RunsByFile) -> dict[str, list[Run]]:
    """Return the runs of each file that count for a suite: on the seeds of its verdicts, or on secret seeds."""
    return {
        name: [run for run in runs if run.secret or suite.counts(run.seed, run.env)] for name, runs in parts.items()
    }


def judge_claims(paper: Paper, runs: Sequence[Run]) -> dict[str, list[JudgedClaim]]:
    """Judge all claims of a paper together; return those of each of the :data:`CLAIM_GROUPS`."""
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
    """Return the number of claims with each verdict, and how many keep it after correction for multiple comparisons.

    Args:
        claims: Judged claims.
        show: Formats a verdict.
    """
    counts = Counter(claim.judgement.verdict for claim in claims)
    kept = Counter(claim.judgement.verdict for claim in claims if claim.judgement.corrected == claim.judgement.verdict)
    return ", ".join(
        f"{counts[verdict]} {show(verdict)}"
        + (f" ({kept[verdict]} corrected)" if kept[verdict] < counts[verdict] else "")
        for verdict in VERDICTS
        if counts[verdict]
    )


def cells(claim: JudgedClaim, agent: Callable[[str], str] = str, env: Callable[[str], str] = str) -> list[str]:
    """Return the cells of a claim's row below :data:`HEADER`.

    Args:
        claim: Judged claim.
        agent: Formats an agent's label.
        env: Formats an environment's label.
    """
    judgement = claim.judgement
    start, by = [claim.statement, judgement.verdict], METRIC_TITLES[judgement.by]
    if isinstance(judgement, Dominance):
        return [*start, f"all {len(judgement.envs)}", "each with each", by, MISSING, *_extent(judgement)]
    comparison = judgement.claim
    methods = f"{agent(comparison.better)} {RELATIONS[comparison.kind]} {agent(comparison.worse)}"
    if comparison.worse_env:
        methods += f" on {env(comparison.worse_env)}"
    difference = f"{judgement.difference:.3f}" if judgement.pairs else MISSING
    low, high = f"{judgement.low:.3f}", f"{judgement.high:.3f}"
    if judgement.pairs >= MIN_SEEDS and low != high:
        difference += f" [{low}, {high}]"
    extent = _extent(judgement, comparison.looks[0], comparison.after)
    return [*start, env(judgement.env), methods, by, difference, *extent]


def _extent(judgement: Judged, needed: int = 0, after: int | None = None) -> list[str]:
    """Return the numbers of pairs and of rounds, each with the required number if it is smaller."""
    if not judgement.pairs:
        return ["0", MISSING]
    pairs = str(judgement.pairs) if judgement.pairs >= needed else f"{judgement.pairs} of {needed}"
    return [pairs, str(judgement.rounds) if after in (None, judgement.rounds) else f"{judgement.rounds} of {after}"]


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
