"""The pages of results: the leaderboard of every suite, and one page for each paper, from the published results.

They are written from ``results`` whenever the site is built; ``cbo_gym/evaluation/claims/data`` has the figures and
claims of each paper, and ``website/common/knowledge.yaml`` the knowledge of agents beyond spaces, graph and initial
data.
"""

from collections.abc import Collection, Sequence
from typing import Any

from cbo_gym.evaluation.claims.papers import papers
from cbo_gym.evaluation.claims.tables import RunsByFile
from website.common.links import Links
from website.common.notes import note
from website.pages.leaderboard import LEADERBOARD, leaderboard_pages
from website.papers.claim_tables import tallies
from website.papers.page import paper_pages

PAPERS = "papers/index.md"


def navigation(others: Sequence[Any]) -> list[Any]:
    pages = [PAPERS, *({paper.short: paper.page} for paper in papers())]
    return [{"Leaderboard": LEADERBOARD}, {"Papers": pages}, *others]


def pages(runs_by_file: RunsByFile, others: Collection[str] = ()) -> dict[str, str]:
    """Return address in the site -> Markdown, or a picture.

    Args:
        runs_by_file: the published runs, by the names of their files.
        others: addresses of other pages, which are linked.
    """
    contents = leaderboard_pages(runs_by_file, Links(others))
    board = set(contents)
    contents[PAPERS] = f"# Papers\n\n{note('papers')}\n\n{tallies(runs_by_file)}\n"
    for paper in papers():
        contents |= paper_pages(paper, runs_by_file, Links(others, "../"), board)
    return contents
