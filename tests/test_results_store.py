"""The published results of the repository, and what is written from them: nothing is older than the store."""

from pathlib import Path

import pytest

from cbo_gym.evaluation import leaderboard, load_published
from cbo_gym.evaluation.markdown import BEGIN, END, results, write_results
from cbo_gym.evaluation.published import MOST_BYTES, own_store
from cbo_gym.evaluation.submission import check_submission, read_card
from cbo_gym.suites import load_all
from docs import agent_results
from tests.evaluation.test_leaderboard import made_up_run

ROOT = Path(__file__).parents[1]
PARTS = sorted(own_store().glob("*.parquet"))
OTHERS = {"showcase", "agents"}  # beside the suites


def between_the_markers(path):
    return path.read_text(encoding="utf-8").partition(f"{BEGIN}\n")[2].partition(END)[0]


def board_of(part):
    if not (own_store() / f"{part}.parquet").exists():
        pytest.skip(f"results/{part}.parquet is not published yet")
    return leaderboard(load_published(suite=part))


def test_the_readme_is_not_older_than_the_store():
    assert between_the_markers(ROOT / "README.md") == results(board_of("showcase")), "make readme"


def test_the_agents_pages_are_not_older_than_the_store():
    board = board_of(agent_results.SUITE)
    assert agent_results.RESULTS.read_text(encoding="utf-8") == agent_results.text(board), "make readme"


def test_a_table_that_is_older_than_its_runs_is_told(tmp_path):
    """The comparison that the two tests above make, on runs that are known."""
    runs = [made_up_run("A", seed, [0.5]) for seed in range(2)]
    path = tmp_path / "README.md"
    path.write_text(f"{BEGIN}\n{END}\n", encoding="utf-8")
    write_results(path, leaderboard(runs))
    assert between_the_markers(path) == results(leaderboard(runs))
    assert between_the_markers(path) != results(leaderboard([*runs, made_up_run("B", 0, [0.6])]))
    assert agent_results.text(leaderboard(runs)) != agent_results.text(leaderboard(runs[:1]))


@pytest.mark.parametrize("path", PARTS, ids=lambda path: path.stem)
def test_every_file_is_of_a_suite_or_a_submission_and_can_be_read(path):
    card = path.with_suffix(".yaml")
    assert path.stem in OTHERS | {suite.name for suite in load_all()} or read_card(card)
    runs = load_published(path)
    assert any(run.status == "finished" for run in runs)
    assert not any("/" in run.error for run in runs if run.status == "failed"), "paths of a machine"


def test_the_store_is_small():
    assert PARTS
    assert sum(path.stat().st_size for path in PARTS) <= MOST_BYTES


@pytest.mark.parametrize("path", PARTS, ids=lambda path: path.stem)
def test_its_numbers_hold_what_is_asked_of_submissions(path, tmp_path, monkeypatch):
    """Optima on record, no regret below 0, registered environments; seeds are counted up while a sweep goes on."""
    monkeypatch.setattr("cbo_gym.evaluation.submission.replays", lambda runs, **_: iter(()))
    (tmp_path / "card.yaml").write_text("agent: all\npaper: p\ncode: c\ncontact: m\nhardware: h\n")
    known = ("the card is of all", "at least 5 seeds are needed", "without a gap")
    found = check_submission(path, tmp_path / "card.yaml").problems
    assert [problem for problem in found if not any(part in problem for part in known)] == []
