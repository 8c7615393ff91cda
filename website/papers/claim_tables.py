"""The claims of a paper's page: the number of each verdict, and each claim with its verdict and interval."""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cbo_gym.evaluation.report.markdown import escape
from cbo_gym.evaluation.report.tables import MISSING
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.suites import load
from website.common.links import Links
from website.common.markdown import fold, table
from website.common.notes import note
from website.papers.claims import Dominance, Judged, Judgement, Regret, correct_together, judge, none_dominates
from website.papers.contents import Exhibit, Paper, papers
from website.papers.published import Parts, paper_runs, seeds_note
from website.papers.verdicts import Kind

REGRETS: dict[Regret, str] = {
    "average_regret": "average regret",
    "best_so_far_regret": "regret of the best action so far",
    "simple_regret": "regret of the recommendation",
    "average_pseudo_regret": "mean of mu\\* - y",
    "missing_gap_over_time": "1 - G_t",
}
#: Columns of the CSV that are fields of a judgement.
FIELDS = ("verdict", "corrected", "by", "difference", "low", "high", "p_value", "pairs", "rounds")
WHOSE = {"The paper's claims": False, "Claims of ours": True}
VERDICTS = ("confirmed", "refuted", "equivalent", "open", "not run")
RELATIONS: dict[Kind, str] = {"better": "over", "as good": "as good as", "equivalent": "like"}


class JudgedClaim(NamedTuple):
    """A claim of an exhibit, on two methods and an environment or on all of them; ours, or the paper's."""

    statement: str
    ours: bool
    judgement: Judgement | Dominance


def judged_claims(paper: Paper, runs: Sequence[Run]) -> dict[str, list[JudgedClaim]]:
    """Whose claims -> all of them; those of a page are corrected together, the paper's and ours."""
    claims = [claim for exhibit in paper.exhibits for claim in _claims(exhibit, paper, runs)]
    corrected = correct_together([claim.judgement for claim in claims])
    claims = [claim._replace(judgement=judgement) for claim, judgement in zip(claims, corrected, strict=True)]
    return {whose: [claim for claim in claims if claim.ours is ours] for whose, ours in WHOSE.items()}


def _claims(exhibit: Exhibit, paper: Paper, runs: Sequence[Run]) -> Iterator[JudgedClaim]:
    if by := exhibit.none_dominates:
        judgement = none_dominates(exhibit.agents, exhibit.environments, by, paper.rules, runs)
        yield JudgedClaim(f"No method dominates ({exhibit.name})", True, judgement)
    for entry in exhibit.claims:
        for judgement in (judgement for claim in entry.claims(paper.rules) for judgement in judge(claim, runs)):
            yield JudgedClaim(f"{escape(entry.said)} ({exhibit.name})", entry.ours, judgement)


def tallies(parts: Parts) -> str:
    """Return a table of the number of claims of each paper with each verdict, with links to pages in its folder."""
    rows = []
    for paper in papers():
        claims = judged_claims(paper, paper_runs(paper, parts))
        cells = [_tally([claim.judgement for claim in claims[whose]]) or MISSING for whose in WHOSE]
        rows.append([f"[{paper.short}]({paper.suite}.md)", *cells])
    return table(["paper", *(whose.lower() for whose in WHOSE)], rows, left=3)


def claims_part(paper: Paper, divisions: Mapping[str, list[JudgedClaim]], links: Links) -> list[str]:
    """Return the part of the page on claims: how many hold, the setting, and the verdict on each environment."""
    if not any(divisions.values()):
        return [paper.setting, "## Claims", "The paper compares no methods on these environments."]
    parts = [f"**{whose}: {_tally([claim.judgement for claim in own])}**" for whose, own in divisions.items() if own]
    summary = f"{'; '.join(parts)}, each counted on each of its environments. {seeds_note(load(paper.suite))}"
    parts = [summary, paper.setting, "## Claims"]
    header = ["claim", "verdict", "environment", "methods", "by", "difference", "pairs", "rounds"]
    for whose, own in divisions.items():
        if own:
            rows = [[claim.statement, *_cells(claim.judgement, links)] for claim in own]
            heading = [f"### {whose}"] if all(divisions.values()) else []
            parts += [*heading, f'<div class="claims" markdown>\n\n{table(header, rows, left=5)}\n\n</div>']
    return [
        *parts,
        f"[These numbers as CSV]({paper.suite}-claims.csv)",
        fold("How claims are judged", note("claims")),
    ]


def claims_csv(divisions: Mapping[str, list[JudgedClaim]]) -> str:
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


def _tally(judged: Sequence[Judged]) -> str:
    """Return the number of claims with each verdict, and of those that keep it if all are judged together."""
    counts = Counter(judgement.verdict for judgement in judged)
    kept = Counter(judgement.verdict for judgement in judged if judgement.corrected == judgement.verdict)
    return ", ".join(
        f"{counts[verdict]} {_verdict(verdict)}"
        + (f" ({kept[verdict]} corrected)" if kept[verdict] < counts[verdict] else "")
        for verdict in VERDICTS
        if counts[verdict]
    )


def _verdict(verdict: str) -> str:
    """Return a verdict in words and in colour."""
    return f'<span class="verdict {verdict.replace(" ", "-")}">{verdict}</span>'


def _cells(judgement: Judgement | Dominance, links: Links) -> list[str]:
    """Return the cells of a row, without the statement of the claim."""
    verdict, by = _verdict(judgement.verdict), REGRETS[judgement.by]
    if isinstance(judgement, Dominance):
        return [verdict, f"all {len(judgement.envs)}", "each with each", by, MISSING, *_extent(judgement)]
    claim = judgement.claim
    methods = f"{links.agent(claim.better)} {RELATIONS[claim.kind]} {links.agent(claim.worse)}"
    if claim.worse_env:
        methods += f" on {links.env(claim.worse_env)}"
    difference = f"{judgement.difference:.3f}" if judgement.pairs else MISSING
    low, high = f"{judgement.low:.3f}", f"{judgement.high:.3f}"
    if np.isfinite([judgement.low, judgement.high]).all() and low != high:
        difference += f" [{low},&nbsp;{high}]"
    extent = _extent(judgement, claim.looks[0], claim.after)
    return [verdict, links.env(judgement.env), methods, by, difference, *extent]


def _extent(judgement: Judged, needed: int = 0, after: int | None = None) -> list[str]:
    """Return pairs and rounds, and the required numbers if there are fewer."""
    if not judgement.pairs:
        return ["0", MISSING]
    pairs = str(judgement.pairs) if judgement.pairs >= needed else f"{judgement.pairs} of {needed}"
    return [pairs, str(judgement.rounds) if after in (None, judgement.rounds) else f"{judgement.rounds} of {after}"]
