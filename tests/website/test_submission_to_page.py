"""A third-party agent: a suite played, published, checked, entered, and ranked on the page."""

import re

import pytest
from typer.testing import CliRunner

from cbo_gym.agent_registry.zoo import zoo
from cbo_gym.cli import app
from cbo_gym.evaluation import load_published
from cbo_gym.evaluation.store.published import put
from cbo_gym.evaluation.suites import Suite
from tests.support.runs import check_here, play_here
from website.common.links import Links
from website.pages import leaderboard as leaderboard_page
from website.papers import claim_tables

AGENT = "tests.support.agents:Centre"
TINY = Suite(
    name="tiny", title="Two tasks", description="d", environments=["CBO/Dropwave-v0", "CBO/Alpine2-v0"], horizon=4,
    seeds=2, metric="score",
)  # fmt: skip
CARD = f"agent: {AGENT}\nsuite: tiny\npaper: none\ncode: here\ncontact: me\nhardware: 2 cores\n"


def call(*words):
    done = CliRunner(env={"COLUMNS": "200"}).invoke(app, list(map(str, words)))
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


@pytest.mark.slow  # it starts some thirty processes; tests/referee/test_submission.py looks at the steps
def test_a_submission_goes_the_whole_way_to_the_page(tmp_path, monkeypatch):
    for place in ("referee.submission.load", "cli.suites.load"):
        monkeypatch.setattr(f"cbo_gym.{place}", {"tiny": TINY}.__getitem__)
    monkeypatch.setattr(leaderboard_page, "load_all", lambda: (TINY,))
    monkeypatch.setattr(claim_tables, "papers", lambda: ())
    check_here(monkeypatch)
    runs, store = tmp_path / "runs" / "centre", tmp_path / "store"
    call("sweep", runs, "--suite", "tiny", "-a", AGENT)
    call("publish", runs, "--submission", "--store", tmp_path / "sent")
    (tmp_path / "card.yaml").write_text(CARD)
    file = tmp_path / "sent" / "centre.parquet"
    words = ("check-submission", file, "--card", tmp_path / "card.yaml", "--allow", AGENT, "--blind", 2)
    assert "can enter, verified." in call(*words, "--into", store / "centre.parquet")
    put(store / "tiny.parquet", play_here(["Random"], TINY.environments, 2, horizon=4))
    parts = {path.stem: load_published(path) for path in store.glob("*.parquet")}
    page = leaderboard_page.leaderboard_pages(parts, Links({f"agents/{name}.md" for name in zoo()}))["leaderboard.md"]
    ranked = page.partition("## tiny")[2].partition("<details")[0]
    assert re.search(r"\| tests\.support\.agents:Centre\S* \| 2 ", ranked)
    assert "[Random]" in ranked
