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
from cbo_gym.evaluation.store.published import load_published, own_store
from cbo_gym.evaluation.suites import Suite, load

Parts = Mapping[str, Sequence[Run]]  # name of a file of published results -> its runs
SHOWCASE = "showcase"  # the file of the README's table, which no verdict uses
REGRETS: dict[Regret, str] = {
    "average_regret": "average regret",
    "best_so_far_regret": "regret of the best action so far",
    "simple_regret": "regret of the recommendation",
    "average_pseudo_regret": "mean of mu* - y",
    "missing_gap_over_time": "1 - G_t",
}
HEADER = ("claim", "verdict", "environment", "methods", "by", "difference", "pairs", "rounds")
#: Columns of the CSV that are fields of a judgement.
FIELDS = ("verdict", "corrected", "by", "difference", "low", "high", "p_value", "pairs", "rounds")
WHOSE = {"The paper's claims": False, "Claims of ours": True}
VERDICTS: tuple[Verdict, ...] = ("confirmed", "refuted", "equivalent", "open", "not run")
RELATIONS: dict[Kind, str] = {"better": "over", "as good": "as good as", "equivalent": "like"}


class JudgedClaim(NamedTuple):
    """A claim of an exhibit, the paper's or ours, on two methods and an environment, or on all of them."""

    statement: str
    ours: bool
    judgement: Judgement | Dominance


def published_parts(store: Path | None = None) -> Parts:
    """Return the runs of a store, the package's own by default, by the names of its files; without the showcase.

    Raises:
        ArgumentError: if there is no such folder, or it has no published results.
    """
    store = store or own_store()
    files = [path for path in sorted(store.glob("*.parquet")) if path.stem != SHOWCASE]
    if not files:
        raise ArgumentError(f"{store} is not a folder with published results; give the one that cbo-gym publish wrote")
    return {path.stem: load_published(path) for path in files}


def paper_runs(paper: Paper, parts: Parts) -> list[Run]:
    """Return runs on the paper's environments, with any keywords: those with its rounds, and those in its own file."""
    suite = load(paper.suite)
    parts = counted_runs(suite, parts)
    of_any = (run for runs in parts.values() for run in runs if run.horizon == paper.rounds)
    return newest(run for run in (*of_any, *parts.get(paper.suite, ())) if matches(run.env, suite.environments))


def counted_runs(suite: Suite, parts: Parts) -> dict[str, list[Run]]:
    """Return the runs of each file that count for a suite: on the seeds of its verdicts, or blind."""
    return {name: [run for run in runs if run.secret or suite.takes(run.seed, run.env)] for name, runs in parts.items()}


def judged_claims(paper: Paper, runs: Sequence[Run]) -> dict[str, list[JudgedClaim]]:
    """Judge all claims of a paper together; return the paper's claims and ours by their titles in :data:`WHOSE`."""
    claims = [claim for exhibit in paper.exhibits for claim in _claims(exhibit, paper, runs)]
    corrected = correct_together([claim.judgement for claim in claims])
    claims = [claim._replace(judgement=judgement) for claim, judgement in zip(claims, corrected, strict=True)]
    return {whose: [claim for claim in claims if claim.ours is ours] for whose, ours in WHOSE.items()}


def _claims(exhibit: Exhibit, paper: Paper, runs: Sequence[Run]) -> Iterator[JudgedClaim]:
    if by := exhibit.none_dominates:
        judgement = none_dominates(exhibit.agents, exhibit.environments, by, paper.rules, runs)
        yield JudgedClaim(f"No method dominates ({exhibit.name})", True, judgement)
    for entry in exhibit.claims:
        for claim in entry.claims(paper.rules):
            for of_env in judge(claim, runs):
                yield JudgedClaim(f"{entry.statement} ({exhibit.name})", entry.ours, of_env)


def tally(claims: Sequence[JudgedClaim], show: Callable[[str], str] = str) -> str:
    """Return the number of claims with each verdict, and of those that keep it if all are judged together.

    Args:
        claims: Judged claims.
        show: Returns a verdict as it is shown.
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
        agent: Returns an agent's label as it is shown.
        env: Returns an environment's label as it is shown.
    """
    judgement = claim.judgement
    start, by = [claim.statement, judgement.verdict], REGRETS[judgement.by]
    if isinstance(judgement, Dominance):
        return [*start, f"all {len(judgement.envs)}", "each with each", by, MISSING, *_extent(judgement)]
    about = judgement.claim
    methods = f"{agent(about.better)} {RELATIONS[about.kind]} {agent(about.worse)}"
    if about.worse_env:
        methods += f" on {env(about.worse_env)}"
    difference = f"{judgement.difference:.3f}" if judgement.pairs else MISSING
    low, high = f"{judgement.low:.3f}", f"{judgement.high:.3f}"
    if judgement.pairs >= MIN_SEEDS and low != high:
        difference += f" [{low}, {high}]"
    extent = _extent(judgement, about.looks[0], about.after)
    return [*start, env(judgement.env), methods, by, difference, *extent]


def _extent(judgement: Judged, needed: int = 0, after: int | None = None) -> list[str]:
    """Return pairs and rounds, and the required numbers if there are fewer."""
    if not judgement.pairs:
        return ["0", MISSING]
    pairs = str(judgement.pairs) if judgement.pairs >= needed else f"{judgement.pairs} of {needed}"
    return [pairs, str(judgement.rounds) if after in (None, judgement.rounds) else f"{judgement.rounds} of {after}"]


def claims_csv(divisions: Mapping[str, Sequence[JudgedClaim]]) -> str:
    """Return the table of claims as CSV, its numbers in full."""
    stream = io.StringIO()
    fields = ["claim", "whose", "environment", "better", "worse", *FIELDS]
    writer = csv.DictWriter(stream, fields, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for whose, own in divisions.items():
        for claim in own:
            row = vars(claim.judgement) | {"claim": claim.statement, "whose": whose}
            if isinstance(claim.judgement, Judgement):
                methods = claim.judgement.claim
                row |= {"environment": row["env"], "better": methods.better, "worse": methods.worse}
            writer.writerow(row)
    return stream.getvalue()
