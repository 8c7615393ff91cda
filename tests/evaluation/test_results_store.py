"""The published results of the repository, and what is written from them: nothing is older than the store."""

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from cbo_gym.envs.registry import find_entry
from cbo_gym.evaluation import leaderboard, load_published
from cbo_gym.evaluation.report.markdown import with_part
from cbo_gym.evaluation.runs.results import stack_curves
from cbo_gym.evaluation.store.published import MAX_BYTES, package_store
from cbo_gym.evaluation.suites import load_all
from cbo_gym.referee.admission import admit
from cbo_gym.referee.submission import read_card
from cbo_gym.task import Mode
from website.commands import showcase
from website.pages import agent_results

ROOT = Path(__file__).parents[2]
PARTS = sorted(package_store().glob("*.parquet"))
MOST_OF_A_WHEEL = 12 * 10**6  # bytes; the results are in it
OTHERS = {"showcase", "agents"}  # beside the suites


def board_of(part):
    if not (package_store() / f"{part}.parquet").exists():
        pytest.skip(f"results/{part}.parquet is not published yet")
    return leaderboard(load_published(suite=part))


@pytest.mark.parametrize("part", ["modes", "results"])
def test_the_readme_is_not_older_than_the_code_and_the_store(part):
    written = showcase.modes_table() if part == "modes" else showcase.scores_table(board_of(showcase.SUITE))
    assert with_part(ROOT / "README.md", part, written) == (ROOT / "README.md").read_text(encoding="utf-8"), (
        "make readme"
    )


def test_the_agents_pages_are_not_older_than_the_store():
    board = board_of(agent_results.SUITE)
    assert agent_results.RESULTS.read_text(encoding="utf-8") == agent_results.csv_of_board(board), "make readme"


@pytest.mark.parametrize("path", PARTS, ids=lambda path: path.stem)
def test_every_file_is_of_a_suite_or_a_submission_and_its_numbers_can_be(path):
    """Optima on record, no regret below 0 but where luck counts, registered environments."""
    assert path.stem in OTHERS | {suite.name for suite in load_all()} or read_card(path.with_suffix(".yaml"))
    runs = load_published(path)
    assert any(run.status == "finished" for run in runs)
    assert not any("/" in run.error for run in runs if run.status == "failed"), "paths of a machine"
    lucky = {Mode.CONTEXTUAL: "context_regret", Mode.ADVERSARIAL: "simple_regret"}
    groups = defaultdict(list)
    for run in runs:
        groups[run.agent, run.env, run.horizon, run.mode, run.status].append(run)
    for (_, env, _, mode, status), own in groups.items():
        admit(own[0])
        if status != "finished":
            continue
        column, entry = lucky.get(Mode(mode), "instant_regret"), find_entry(env)
        for run, regrets in zip(own, stack_curves(own, [column])[column], strict=True):
            gap = run.optimum - run.random_value
            assert gap > 0
            assert entry is None or entry.optimum is None or abs(entry.optimum.value - run.optimum) <= 1e-6 * gap
            assert (regrets[~np.isnan(regrets)] >= -0.01 * gap).all(), (run.agent, run.env, run.seed)


def test_the_store_is_small():
    assert PARTS
    assert sum(path.stat().st_size for path in PARTS) <= min(MAX_BYTES, MOST_OF_A_WHEEL)
