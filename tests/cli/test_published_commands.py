"""publish, verify and check-submission, as they are typed."""

import shutil
from dataclasses import replace

import pytest

import cbo_gym.referee.referee  # noqa: F401  (it must hold the real replays before a test replaces them)
from cbo_gym import evaluate
from cbo_gym.evaluation import load_published
from cbo_gym.evaluation.claims.papers import papers
from cbo_gym.evaluation.claims.tables import published_parts
from cbo_gym.evaluation.runs.results import name_of, save_run
from cbo_gym.evaluation.store.published import package_store
from cbo_gym.evaluation.suites import Suite
from cbo_gym.referee.replay import Replay
from tests.support.cli import as_json, invoke, run
from tests.support.runs import check_here
from website.common.links import Links
from website.papers.page import paper_pages

ENV = "CBO/Dropwave-v0"


@pytest.fixture(scope="module")
def played():
    return [evaluate("Random", ENV, seed, horizon=3) for seed in range(5)]


@pytest.fixture
def here(played, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for one in [*played, replace(played[0], agent="GP-UCB")]:
        save_run(tmp_path / "runs" / "mine" / name_of(one), one)
    return tmp_path


def test_publish_says_what_it_did_and_other_commands_read_it(here):
    said = invoke("publish", "runs/mine")
    assert "results/mine.parquet: 6 added, 0 replaced by newer ones, 0 as before;" in said
    again = invoke("publish", "runs/mine", "--suite", "mine", "--store", "results")
    assert "Runs of runs/mine that the store has already, or in a newer version: 6." in again
    assert "6 are on environments that are not of the suite gpoo2022" in invoke(
        "publish", "runs/mine", "--suite", "gpoo2022", code=2
    )
    board = invoke("leaderboard", "results")
    assert "Dropwave-v0" in board
    assert "Report:" not in board
    assert not (here / "results" / "report").exists()
    published, full = (as_json("leaderboard", source) for source in ("results/mine.parquet", "runs/mine"))
    assert published["provenance"] == full["provenance"]
    assert [row["iqm"] for row in published["overall"]] == pytest.approx([row["iqm"] for row in full["overall"]])
    assert "GP-UCB minus Random" in invoke("compare", "results", "GP-UCB", "Random")


def test_a_sweep_goes_on_where_a_store_ends(here):
    invoke("publish", "runs/mine")
    words = ["sweep", "runs/more", "-a", "Random", "-e", ENV, "--horizon", "3", "--jobs", "1"]
    words += ["--skip-published", "results"]
    assert "0 finished, 0 failed, 0 skipped" in invoke(*words, "--seeds", "5")
    assert "1 finished, 0 failed, 0 skipped; 0 of them" in invoke(*words, "--seeds", "6")
    assert "1 added, 0 replaced" in invoke("publish", "runs/more", "--suite", "mine")
    others = invoke(*words, "--seeds", "6", "--recommend", "end", "--dry-run")  # asked for at other times
    assert "Random CBO/Dropwave-v0, T=3 6 0 6" in others
    assert "no published results nowhere" in invoke(*words[:-1], "nowhere", "--seeds", "5", code=2)


def test_verify_tells_verdicts_and_its_status_is_1_if_one_differs(here, played, monkeypatch):
    invoke("publish", "runs/mine")
    same = Replay(played[0], "identical", ("code",), "")
    agrees, differs = (Replay(played[1], verdict, (), "from round 2 on") for verdict in ("agrees", "differs"))
    for found, status, runs, groups in (
        ([same, agrees], 0, "2 runs: 1 identical, 1 agrees", "1 group: 1 agrees"),
        ([same, differs], 1, "2 runs: 1 identical, 1 differs", "1 group: 1 differs"),
        ([differs, differs], 1, "2 runs: 2 differ ", "1 group: 1 differs"),
    ):
        monkeypatch.setattr("cbo_gym.referee.replay.replays", lambda runs, allow, on_run, found=found: iter(found))
        said = invoke("verify", "--sample", "2", code=status)
        assert runs in said
        assert groups in said
    monkeypatch.setattr("cbo_gym.referee.replay.replays", lambda runs, allow, on_run: iter([same]))
    (group,) = as_json("verify", "results", "--sample", "1")
    assert (group["agent"], group["verdict"], len(group["replays"])) == ("Random", "identical", 1)
    assert "no published results nowhere" in invoke("verify", "nowhere", code=2)


def test_a_submission_is_checked(here, played, monkeypatch):
    tiny = Suite(
        name="tiny", title="t", description="d", environments=[played[0].env], horizon=played[0].horizon, seeds=5,
        metric="score",
    )  # fmt: skip
    monkeypatch.setattr("cbo_gym.referee.submission.load", {"tiny": tiny}.__getitem__)
    check_here(monkeypatch)
    (here / "card.yaml").write_text("agent: Random\nsuite: tiny\npaper: p\ncode: c\ncontact: m\nhardware: h\n")
    words = ("check-submission", "results/mine.parquet", "--card", "card.yaml")
    invoke("publish", "runs/mine", "--submission")
    assert "the file has runs of GP-UCB too" in invoke(*words, code=1)
    assert all(one.unverified for one in load_published(here / "results"))
    (here / "runs" / "mine" / name_of(replace(played[0], agent="GP-UCB"))).unlink()
    (here / "results" / "mine.parquet").unlink()
    invoke("publish", "runs/mine", "--submission")
    said = invoke(*words, "--blind", "2", "--into", "results/random.parquet")
    assert "results/mine.parquet can enter, verified." in said
    assert "Mean scores of play" in said
    assert not any(one.unverified for one in load_published(here / "results" / "random.parquet"))
    assert "cannot read none.yaml" in invoke(*words[:2], "--card", "none.yaml", code=2)


@pytest.mark.parametrize(
    ("replay", "status", "line"),
    [
        (("identical", (), ""), 0, "1 run: identical"),
        (("agrees", ("machine",), "from round 2 on"), 0, "1 run: agrees: from round 2 on"),
        (
            ("differs", ("machine",), "from round 2 on", (0.0, 0.0), True),
            1,
            "diverges from round 2 on, see cbo-gym verify",
        ),
        (("differs", (), "from round 2 on"), 1, "1 run: differs: from round 2"),
    ],
)
def test_a_published_run_is_played_again_by_its_id(here, monkeypatch, replay, status, line):
    invoke("publish", "runs/mine")
    run = load_published(here / "results")[2]
    monkeypatch.setattr(
        "cbo_gym.referee.replay.replays", lambda runs, **_: iter([Replay(run, *replay)] * (runs == [run]))
    )
    assert line in invoke("replay", run.id[:10], "--store", "results", code=status)
    assert "no published run has the id 0000000" in invoke("replay", "0000000", "--store", "results", code=2)


def test_claims_prints_what_the_page_of_the_paper_prints(tmp_path):
    shutil.copy(package_store() / "cbou2025.parquet", tmp_path)
    words = ["claims", "cbou2025", "--store", str(tmp_path)]
    (paper,) = (one for one in papers() if one.suite == "cbou2025")
    pages = paper_pages(paper, published_parts(tmp_path), Links())
    assert run(*words, "--csv").stdout == pages["papers/cbou2025-claims.csv"]
    rows = [row.split(" | ") for row in pages[paper.page].splitlines() if 'class="verdict' in row and row[0] == "|"]
    printed = invoke(*words)
    assert len(rows) == 8
    assert all(f" {row[5].replace('&nbsp;', ' ')} {row[6]} {row[7].rstrip(' |')} " in printed for row in rows)


def test_claims_lists_the_papers_and_suggests_a_name():
    assert all(paper.suite in invoke("claims") for paper in papers())
    assert "did you mean 'cocabo2023'" in invoke("claims", "cocabo2024", code=2)
    assert "is not a folder with published results" in invoke("claims", "cbou2025", "--store", "nowhere", code=2)
