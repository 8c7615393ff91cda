"""The command claims, which judges the claims of a paper about its methods by the published runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from cbo_gym.cli.application import app
from cbo_gym.cli.output import SEE_CSV, print_hidden, print_table, say
from cbo_gym.errors import ArgumentError, name_hint

#: Columns that a narrow terminal hides, the first hidden first.
EXPENDABLE = ("rounds", "by", "pairs")
EXPLANATION = (
    "A difference is the regret of the second method minus that of the first, averaged over the same seeds, as a share "
    "of the gap between the optimum and a random action. Its 95 % interval is the wider of Student's and Johnson's, "
    "which corrects for skewed differences. Corrected: verdicts that remain after Holm's correction for all claims of "
    "the paper."
)


@app.command()
def claims(
    suite: Annotated[
        str | None,
        typer.Argument(metavar="SUITE", help="Suite of the paper: [b]cocabo2023[/b]; without it, list them."),
    ] = None,
    store: Annotated[
        Path | None, typer.Option(help="Folder of published results; the package's own by default.")
    ] = None,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print all numbers in full, as the file that the paper's page links to.")
    ] = False,
) -> None:
    """Judge the claims of a paper about two methods by the published runs, as the paper's page does.

    A claim was written down with its regret, its number of pairs and its margin before its runs were made. It is
    confirmed or refuted if the interval of the differences says so, equivalent if the interval is within the margin,
    and open otherwise. The paper's claims are judged on its own settings of the methods, our claims on the
    defaults.

    Example: [b]cbo-gym claims cocabo2023[/b]
    """
    from cbo_gym.evaluation.claims import tables
    from cbo_gym.evaluation.claims.papers import papers

    by_suite = {paper.suite: paper for paper in papers()}
    if suite is None:
        print_table("", ["suite", "paper", "title"], [[p.suite, p.short, p.title] for p in by_suite.values()])
        return
    if suite not in by_suite:
        raise ArgumentError(f"there are no claims of {suite!r}{name_hint(suite, list(by_suite), 'cbo-gym claims')}")
    paper = by_suite[suite]
    groups = tables.judge_claims(paper, tables.paper_runs(paper, tables.published_parts(store)))
    if as_csv:
        sys.stdout.write(tables.claims_csv(groups))
        return
    hidden: list[str] = []
    for group, judged in groups.items():
        if judged:
            rows = [tables.cells(claim) for claim in judged]
            hidden += print_table(f"{group}: {tables.tally(judged)}", tables.HEADER, rows, droppable=EXPENDABLE)
    print_hidden(hidden, SEE_CSV)
    say(EXPLANATION if any(groups.values()) else f"{paper.short} compares no methods on these environments.", "dim")
