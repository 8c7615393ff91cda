"""The claims of a paper's page: the number of each verdict, and each claim with its verdict and interval."""

from collections.abc import Mapping

from cbo_gym.evaluation.claims.papers import Paper, papers
from cbo_gym.evaluation.claims.tables import (
    CLAIM_GROUPS,
    HEADER,
    JudgedClaim,
    RunsByFile,
    cells,
    judge_claims,
    paper_runs,
    tally,
)
from cbo_gym.evaluation.report.markdown import escape
from cbo_gym.evaluation.report.tables import MISSING
from cbo_gym.evaluation.suites import load
from website.common.links import Links
from website.common.markdown import fold, table
from website.common.notes import note
from website.papers.published import seeds_note


def tallies(runs_by_file: RunsByFile) -> str:
    """Return a table of the number of claims of each paper with each verdict, with links to pages in its folder."""
    rows = []
    for paper in papers():
        claims = judge_claims(paper, paper_runs(paper, runs_by_file))
        counts = [tally(claims[group], _verdict) or MISSING for group in CLAIM_GROUPS]
        rows.append([f"[{paper.short}]({paper.suite}.md)", *counts])
    return table(["paper", *(group.lower() for group in CLAIM_GROUPS)], rows, left=3)


def claims_part(paper: Paper, groups: Mapping[str, list[JudgedClaim]], links: Links) -> list[str]:
    """Return the part of the page on claims: how many hold, the setting, and the verdict on each environment."""
    if not any(groups.values()):
        return [paper.setting, "## Claims", "The paper compares no methods on these environments."]
    counts = [f"**{group}: {tally(own, _verdict)}**" for group, own in groups.items() if own]
    summary = f"{'; '.join(counts)}, each counted on each of its environments. {seeds_note(load(paper.suite))}"
    parts = [summary, paper.setting, "## Claims"]
    for group, own in groups.items():
        if own:
            rows = [_row(claim, links) for claim in own]
            heading = [f"### {group}"] if all(groups.values()) else []
            parts += [*heading, f'<div class="claims" markdown>\n\n{table(HEADER, rows, left=5)}\n\n</div>']
    return [
        *parts,
        f"[These numbers as CSV]({paper.suite}-claims.csv), which `cbo-gym claims {paper.suite} --csv` prints too.",
        fold("How claims are judged", note("claims")),
    ]


def _row(claim: JudgedClaim, links: Links) -> list[str]:
    statement, verdict, env, methods, by, difference, *extent = cells(claim, links.agent, links.env)
    difference = difference.replace(", ", ",&nbsp;")
    return [escape(statement), _verdict(verdict), env, methods, escape(by), difference, *extent]


def _verdict(verdict: str) -> str:
    """Return a verdict in words and in colour."""
    return f'<span class="verdict {verdict.replace(" ", "-")}">{verdict}</span>'
