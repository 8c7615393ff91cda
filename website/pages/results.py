"""The pages of results: the leaderboard of every suite, and one page for each paper, from the published results.

They are written from ``results`` whenever the site is built; ``docs/papers`` has the figures and claims of each paper,
and ``website/common/knowledge.yaml`` the knowledge of agents beyond spaces, graph and initial data.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.store.published import load_published, own_store
from website.common.parts import light_and_dark, own_runs
from website.pages import choice_evidence
from website.pages.leaderboard import LEADERBOARD, leaderboard_pages
from website.papers.contents import papers
from website.papers.page import paper_page, picture_path, pictures


def navigation(others: Sequence[Any]) -> list[Any]:
    return [{"Leaderboard": LEADERBOARD}, {"Papers": [{paper.title: paper.page} for paper in papers()]}, *others]


def published_parts() -> dict[str, list[Run]]:
    """Name of a file of published results -> its runs, without those of the README's table."""
    files = [path for path in sorted(own_store().glob("*.parquet")) if path.stem != choice_evidence.SHOWCASE]
    return {path.stem: load_published(path) for path in files}


def pages(parts: Mapping[str, Sequence[Run]], others: Collection[str] = ()) -> dict[str, str]:
    """Address in the site -> Markdown, or a picture.

    Args:
        parts: the published runs, by the names of their files.
        others: addresses of other pages, which are linked.
    """
    contents = leaderboard_pages(parts, others)
    board = set(contents)
    for paper in papers():
        contents[paper.page] = paper_page(paper, parts, others, board)
        own = own_runs(paper, parts)
        for exhibit in paper.exhibits:
            for ending, svg in pictures(exhibit, own).items():
                contents |= light_and_dark(picture_path(paper, exhibit, ending), svg)
    return contents
