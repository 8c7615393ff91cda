"""Published runs played again, and submissions: what was not played so is found."""

from dataclasses import replace

import polars as pl
import pytest

from cbo_gym import evaluate
from cbo_gym.evaluation import load_published, publish
from cbo_gym.evaluation.replay import ROUND_TOLERANCE, compared, replays, sample_of
from cbo_gym.evaluation.results import name_of, save_run
from cbo_gym.evaluation.submission import Card, check_submission, read_card

ENV = "CBO/Dropwave-v0"
CARD = "agent: Random\npaper: none\ncode: here\ncontact: me\nhardware: 2 cores\n"


def published(folder, runs):
    for run in runs:
        save_run(folder / "mine" / name_of(run), run)
    return publish(folder / "mine", folder).path


def tampered(run, column="reward", by=0.5, since=0):
    changed = run.table[column] + pl.Series([by if place >= since else 0.0 for place in range(run.horizon)])
    return replace(run, table=run.table.with_columns(changed.alias(column)))


@pytest.fixture(scope="module")
def played():
    return [evaluate("Random", ENV, seed, horizon=4) for seed in range(5)]


@pytest.fixture(scope="module")
def verdicts(played, tmp_path_factory):
    """Of runs played again in other processes: as they were, with one reward changed, and of an agent that is gone."""
    runs = [played[0], tampered(played[1], since=3), replace(played[2], agent="Gone")]
    runs += [replace(played[3], env="CBO/Dropwave-v99")]
    path = published(tmp_path_factory.mktemp("store"), runs)
    found = {one.run.seed: one for one in replays(load_published(path), n_jobs=1)}
    return [found[seed] for seed in range(4)]


def test_what_was_played_comes_out_again(verdicts):
    assert "machine" not in verdicts[0].elsewhere
    assert verdicts[0].verdict == "identical"


def test_a_reward_that_was_changed_is_found(verdicts):
    assert verdicts[1].verdict in ("differs", "parts")  # with other threads than a process of a sweep has
    assert "from round 4 on" in verdicts[1].why


def test_what_cannot_be_played_is_skipped_with_the_reason(verdicts):
    assert verdicts[2].verdict == verdicts[3].verdict == "skipped"
    assert "the agent 'Gone' is not installed here" in verdicts[2].why
    assert "is no registered environment" in verdicts[3].why


def test_on_the_same_platform_every_bit_counts(played):
    run = played[0]
    assert compared(run, run).verdict == "identical"
    found = compared(tampered(run, by=1e-4, since=2), run)
    assert (found.verdict, found.elsewhere) == ("differs", ())
    assert found.why.startswith("from round 3 on")
    assert compared(tampered(run, by=1e-12), run).verdict == "identical"  # less than the store's precision


def test_elsewhere_rounds_agree_to_a_tolerance_or_the_score_of_play_does(played):
    run = replace(played[0], machine="another", libraries={"numpy": "0"})
    gap = run.optimum - run.random_value
    close = compared(tampered(run, by=0.5 * ROUND_TOLERANCE * gap), played[0])
    assert (close.verdict, close.elsewhere) == ("agrees", ("machine", "libraries"))
    parted = compared(tampered(run, "instant_regret", by=0.2 * gap, since=3), played[0])
    assert parted.verdict == "parts"  # by 0.05 over four rounds
    assert "from round 4 on" in parted.why
    assert compared(tampered(run, "instant_regret", by=0.2 * gap), played[0]).verdict == "differs"
    assert compared(replace(run, optimum=run.optimum + 0.01), played[0]).why.startswith("optimum was")
    assert compared(run, replace(played[0], status="failed", error="a\nboom")).why == "now it is failed: boom"


def test_a_sample_is_of_finished_runs(played):
    runs = [*played, replace(played[0], status="failed")]
    assert len(sample_of(runs, 20)) == 5
    assert sample_of(runs, 2, seed=1) == sample_of(runs, 2, seed=1)
    with pytest.raises(ValueError, match="no finished run"):
        sample_of(runs[5:], 2)


# Submissions -------------------------------------------------------------------------------------------------


@pytest.fixture
def card(tmp_path):
    (tmp_path / "card.yaml").write_text(CARD)
    return tmp_path / "card.yaml"


def problems(path, card, monkeypatch, runs=None):
    """What is found without playing again; of ``runs`` in place of the file's, as another program would write it."""
    monkeypatch.setattr("cbo_gym.evaluation.submission.replays", lambda runs, **_: iter(()))
    if runs is not None:
        monkeypatch.setattr("cbo_gym.evaluation.submission.read_part", lambda path: runs)
    return check_submission(path, card).problems


@pytest.mark.parametrize(
    ("env", "column"), [("CBO/CoCaFig1-v0", "context_regret"), ("CBO/Dropwave-Penny-v0", "simple_regret")]
)
def test_luck_with_contexts_and_moves_is_no_sign_of_fraud(env, column, tmp_path, card, monkeypatch):
    runs = [evaluate("Random", env, seed, horizon=20) for seed in range(5)]
    assert min(run.table["instant_regret"].min() for run in runs) < -0.1
    path = published(tmp_path, runs)
    assert problems(path, card, monkeypatch, runs) == ()
    assert "below 0" in str(problems(path, card, monkeypatch, [tampered(run, column, by=-2.0) for run in runs]))


def test_a_submission_that_holds_enters(played, tmp_path, card):
    found = check_submission(published(tmp_path, played), card, sample=1)
    assert found.problems == ()
    assert [one.verdict for one in found.replays] == ["identical"]
    assert found.card == Card(agent="Random", paper="none", code="here", contact="me", hardware="2 cores")
    assert "5 seeds; 10 are wished for where a run takes less than a minute" in found.remarks


def test_what_is_wrong_is_said(played, tmp_path, card, monkeypatch):
    path = published(tmp_path, played)
    assert problems(path, card, monkeypatch) == ()

    def said(runs):
        return " ".join(problems(path, card, monkeypatch, runs))

    assert "at least 5 seeds are needed; there are 4" in said(played[:4])
    assert "counted from 0 without a gap; there are 1, 2, 3, 4" in said(played[1:])
    assert "the seeds 2 are there more than once" in said([*played, played[2]])
    assert "the card is of Random, the file has runs of GP-UCB(beta=2) too" in said(
        [*played, *(replace(run, agent="GP-UCB(beta=2)") for run in played)]
    )
    assert "CBO/Dropwave-v9 is not registered; there are CBO/Dropwave-v0" in said(
        [replace(run, env="CBO/Dropwave-v9") for run in played]
    )
    assert "which others do not have" in said([replace(run, env="CBO/Custom-v0(problem='a.yaml')") for run in played])
    assert "played with cbo-gym 99.0, which is newer" in said([replace(run, version="99.0") for run in played])
    assert "the optimum is 1.5; on record is 1" in said([replace(run, optimum=1.5) for run in played])
    assert "is below 0, which nothing can earn" in said([tampered(run, "instant_regret", by=-2.0) for run in played])
    assert "is not above the random value" in said([replace(run, random_value=2.0) for run in played])


def test_a_changed_submission_is_found_by_playing(played, tmp_path, card):
    found = check_submission(published(tmp_path, [tampered(run, by=0.3) for run in played]), card, sample=1)
    assert len(found.problems) == 1 or found.replays[0].verdict == "parts"
    assert found.replays[0].verdict != "identical"


def test_an_agent_that_is_not_installed_is_not_played(played, tmp_path, card):
    card.write_text(CARD.replace("Random", "theirs:Agent"))
    found = check_submission(published(tmp_path, [replace(run, agent="theirs:Agent") for run in played]), card)
    assert (found.problems, found.replays) == ((), ())
    assert any("is not installed here" in remark for remark in found.remarks)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CARD + "told: [optimum]\n", "field told.0"),
        (CARD.replace("contact: me\n", ""), "field contact: Field required"),
        (CARD + "hardwar: 1\n", "did you mean 'hardware'"),
        (CARD.replace("Random", "''"), "field agent"),
        ("- a list", "no card of a submission"),
        ("a: [", "cannot read"),
    ],
)
def test_cards_that_are_wrong_are_named(tmp_path, text, message):
    (tmp_path / "card.yaml").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_card(tmp_path / "card.yaml")


def test_cards_that_are_not_there_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"cannot read .*card\.yaml"):
        read_card(tmp_path / "card.yaml")
