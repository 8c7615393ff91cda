"""Submissions: nothing in a file is taken on trust."""

from contextlib import closing
from dataclasses import replace

import gymnasium as gym
import numpy as np
import polars as pl
import pytest

from cbo_gym import evaluate
from cbo_gym.agent_registry.labels import Spec
from cbo_gym.envs import oracle_of
from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation import leaderboard, load_published, load_runs, publish
from cbo_gym.evaluation.claims.judging import Claim, judge
from cbo_gym.evaluation.comparison.pairwise import compare
from cbo_gym.evaluation.comparison.provenance import incomplete_rows
from cbo_gym.evaluation.runs.counted import env_label
from cbo_gym.evaluation.runs.recorded import pack_rows, recorded_actions, with_actions
from cbo_gym.evaluation.runs.results import COLUMNS, TIMING_COLUMNS
from cbo_gym.evaluation.store.published import put
from cbo_gym.evaluation.suites import Suite
from cbo_gym.referee.isolated import IsolatedAgent
from cbo_gym.referee.referee import BlindPlay, describe_drops, describe_gains, min_loss, rescore_runs
from cbo_gym.referee.replay import Replay, compare_runs
from cbo_gym.referee.submission import check_submission, enter, read_card
from tests.support.runs import check_here, play_here, save_runs

AGENT = "tests.support.agents:Centre"
ENVS, ROUNDS, SEEDS = ["CBO/Dropwave-v0", "CBO/ToyGraph-v0"], 4, 2
WITH_EVERY_COLUMN = (
    "CBO/ToyGraph-v0", "CBO/CoCaFig1-v0", "CBO/ToyGraph-Costs-v0", "CBO/CCBOSynthetic1-v0", "CBO/DCBOStat-v0",
    "CBO/PSAGraph-Cost-v0",
)  # fmt: skip
CARD = f"agent: {AGENT}\nsuite: tiny\npaper: none\ncode: here\ncontact: me\nhardware: 2 cores\n"
TINY = Suite(name="tiny", title="t", description="d", environments=ENVS, horizon=ROUNDS, seeds=SEEDS, metric="score")


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setattr("cbo_gym.referee.submission.load", {"tiny": TINY}.__getitem__)


@pytest.fixture
def card(tmp_path):
    (tmp_path / "card.yaml").write_text(CARD)
    return tmp_path / "card.yaml"


@pytest.fixture
def not_blind(monkeypatch):
    """Nothing is played blind."""
    monkeypatch.setattr("cbo_gym.referee.submission.blind_scores", lambda *_, **__: ([], []))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mine") / "mine"
    with closing(IsolatedAgent(Spec.parse(AGENT))) as agent:
        return save_runs(folder, play_here([agent], ENVS, SEEDS, horizon=ROUNDS, label=AGENT))


@pytest.fixture(scope="module")
def file(folder):
    return publish(folder, folder.parent / "store", submission=True).path


@pytest.fixture
def here(monkeypatch):
    check_here(monkeypatch)


@pytest.fixture
def said(file, card, monkeypatch, here):
    """What is found wrong with runs, as another program may write them; without playing anything again."""

    def problems(runs, allow=()):
        monkeypatch.setattr("cbo_gym.referee.submission._read", lambda path: list(runs))
        return " ".join(check_submission(file, card, allow=allow).problems)

    return problems


def test_a_submission_keeps_its_actions_exactly(folder, file, tmp_path):
    full = {(run.env, run.seed): run for run in load_runs(folder)}
    publish(folder, tmp_path)
    for run in (*load_published(file), *load_published(publish(folder, tmp_path, submission=True).path)):
        own = full[run.env, run.seed]
        assert (run.unverified, run.isolated, bool(run.secret)) == (True, True, False)
        save_runs, there = recorded_actions(run), recorded_actions(own)
        assert [list(numbers) for numbers, _ in save_runs.actions] == own.table["action"].to_list()
        assert [chosen for _, chosen in save_runs.actions] == [chosen for _, chosen in there.actions]
        assert list(save_runs.recommended) == own.table["recommended"].to_list()


@pytest.mark.parametrize("where", ["here", pytest.param("in processes", marks=pytest.mark.slow)])
def test_an_honest_submission_is_verified_and_enters(file, card, tmp_path, monkeypatch, where):
    if where == "here":
        check_here(monkeypatch)
    # The centre of the box is Dropwave's optimum as published: with some words both transformed systems are so bad
    # there that the loss is beyond chance.
    monkeypatch.setattr("cbo_gym.referee.referee.secrets.token_hex", lambda size: "ab" * size)
    found = check_submission(file, card, sample=1, blind=2, allow=[AGENT])
    assert (found.problems, found.standing) == ((), "verified")
    assert len(found.replays) == len(ENVS) * SEEDS, "all, where that is cheap"
    assert {one.verdict for one in found.replays} == {"identical"}
    assert [one.env for one in found.blind] == ENVS
    for one in found.blind:
        assert len({run.env for run in one.runs}) == 2, "each on an instance of its own"
        assert {run.isolated for run in one.runs} == {True}
        assert all(run.secret for run in (*one.runs, *one.at_random))
    assert any("s here (medians of 4 runs)" in remark for remark in found.remarks)
    path = enter(found, tmp_path / "store" / "centre.parquet").path
    put(path, [replace(run, secret="of another time") for run in load_published(path) if run.secret])
    assert {run.secret for run in load_published(path) if run.secret} == {"of another time"}, "judged anew"
    enter(found, path)
    board = leaderboard(load_published(path))
    assert board.unverified == ()
    assert set(board.per_env["env"]) == {f"{env}, T={ROUNDS}{end}" for env in ENVS for end in ("", ", blind")}
    assert set(board.per_env.filter(pl.col("env").str.ends_with("blind"))["agent"]) == {AGENT, "Random"}
    ordinary = [run for run in load_published(path) if not run.secret]
    assert board.overall.equals(leaderboard(ordinary).overall)
    assert set(leaderboard([run for run in load_published(path) if run.secret]).overall["agent"]) == {AGENT, "Random"}


def test_what_cannot_be_played_again_is_unverified_and_never_ranked(file, card, tmp_path, here):
    found = check_submission(file, card)
    assert (found.problems, found.replays, found.standing) == ((), (), "unverified")
    assert any("is not installed here" in remark for remark in found.remarks)
    path = enter(found, tmp_path / "store" / "centre.parquet").path
    runs = load_published(path)
    with pytest.raises(ArgumentError, match="all 4 runs are unverified"):
        leaderboard(runs)
    others = [replace(run, agent=name, unverified=False) for run in runs for name in ("Other", "Third")]
    board = leaderboard([*runs, *others])
    assert set(board.per_env["agent"]) == {"Other", "Third"}
    assert {run.agent for run in board.unverified} == {AGENT}
    assert f"unverified, not ranked: {AGENT}, 4 runs on 2 environments" in dict(incomplete_rows(board))
    with pytest.raises(ArgumentError, match="Centre"):
        compare([*runs, *others], AGENT, "Other")
    claim = Claim(better=AGENT, worse="Other", envs=ENVS)
    assert {one.verdict for one in judge(claim, [*runs, *others])} == {"not run"}


def test_unverified_runs_never_replace_verified_ones(file, tmp_path):
    said = [
        replace(run, actions="", recommendations="", date="2099-01-01T00:00:00+00:00") for run in load_published(file)
    ]
    verified = [replace(run, unverified=False, date="2026-01-01T00:00:00+00:00") for run in said]
    path = tmp_path / "store" / "centre.parquet"
    for runs in (said, verified, said):
        put(path, runs)
    assert [run.date[:4] for run in load_published(path)] == ["2026"] * 4


def test_bad_seeds_cannot_be_called_failures(file, card, monkeypatch, not_blind, here):
    runs = load_published(file)
    nothing = pl.DataFrame({"round": pl.Series([], dtype=pl.Int64)})
    hidden = replace(runs[0], status="failed", error="out of memory", actions="", recommendations="", table=nothing)
    monkeypatch.setattr("cbo_gym.referee.submission._read", lambda path: [hidden, *runs[1:]])
    found = check_submission(file, card, sample=1, blind=2, allow=[AGENT])
    assert len(found.problems) == 1
    assert "its status is failed in the file, but it finishes here" in found.problems[0]


def altered(column):
    """Numbers and truth values that are not what they were, null where they were null."""
    return ~column if column.dtype == pl.Boolean else column + 1


def test_every_number_is_computed_again(here):
    every = {name for name, dtype in COLUMNS.items() if dtype.base_type() is not pl.List}
    left = every - {"round", "choice", *TIMING_COLUMNS}  # another choice is another action
    forged, names = [], []
    for env in WITH_EVERY_COLUMN:
        run = evaluate("Random", env, 0, horizon=2)
        for name in sorted(left & {one for one in run.columns if run.table[one].null_count() < run.horizon}):
            forged.append(replace(run, table=run.table.with_columns(altered(run.table[name]).alias(name))))
            names.append(name)
            left.remove(name)
    assert not left, "name an environment that has it"
    for name, (_, found) in zip(names, rescore_runs(forged), strict=True):
        assert [line.split()[0] for line in found] == [name]


def test_fields_are_computed_again_too(file, said):
    runs = load_published(file)
    assert said(runs) == ""
    assert "optimum is given as" in said([replace(run, optimum=run.optimum + 1) for run in runs])
    assert "optimum_standard_error is given as" in said([replace(run, optimum_standard_error=0.5) for run in runs])
    assert "initial_reward is given as" in said([replace(run, initial_reward=7.0) for run in runs])
    assert "it has no actions" in said([replace(run, actions="", recommendations="") for run in runs])
    assert "cannot be read as those of 4 rounds" in said([replace(run, actions=run.actions[:7]) for run in runs])
    outside = pack_rows(np.full((ROUNDS, 2), 2.0))
    assert "cannot be played" in said([replace(run, actions=outside) for run in runs])


def better(run):
    """The run of somebody who wrote down the optimum in place of what was played."""
    env = gym.make(run.env, max_episode_steps=run.horizon)
    codec = oracle_of(env).dynamics.codec
    best = oracle_of(env).optimum.action
    flat = codec.to_flat(best)
    table = run.table.with_columns(
        pl.Series("action", [codec.to_numbers(best)] * run.horizon), pl.Series("recommended", [flat] * run.horizon)
    )
    if codec.choices:
        table = table.with_columns(pl.Series("choice", [codec.choice_index(best)] * run.horizon))
    return replace(run, table=table)


def test_dates_and_seconds_that_cannot_be_are_refused(file, said):
    runs = load_published(file)
    assert "is in the future" in said([replace(run, date="2099-01-01T00:00:00+00:00") for run in runs])
    for value in (-1.0, float("nan")):
        forged = [replace(run, table=run.table.with_columns(act_seconds=pl.lit(value))) for run in runs]
        assert "seconds of some rounds are negative or missing" in said(forged)


def test_actions_that_were_not_played_are_found_by_playing(folder, file, card, monkeypatch, not_blind, here):
    """All numbers fit the actions, and the actions are not the agent's."""
    forged = []
    for run in load_runs(folder):
        played = evaluate(recorded_actions(better(run)), run.env, run.seed, horizon=ROUNDS, label=AGENT)
        forged.append(with_actions(replace(played, isolated=True, sources=run.sources, unverified=True)))
    monkeypatch.setattr("cbo_gym.referee.submission._read", lambda path: forged)
    found = check_submission(file, card, sample=1, blind=2, allow=[AGENT])
    assert found.standing == "refused"
    again = [problem for problem in found.problems if "played again" in problem]
    assert len(again) >= SEEDS, "where the optimum earns more than what was played"
    assert not any("differs from the result of its actions" in problem for problem in found.problems)


def test_the_whole_suite_is_required(file, said):
    runs = load_published(file)
    assert "the suite tiny has 4 rounds there" in said([replace(run, horizon=2, recommend="end") for run in runs])
    assert "missing are 1" in said([run for run in runs if run.seed == 0])
    assert "missing are 0, 1" in said([run for run in runs if run.env == ENVS[0]])
    assert "the seeds 0, 1 are there more than once" in said([*runs, *runs])
    assert "has no seeds 7" in said([*runs, replace(runs[0], seed=7)])
    assert "has no such environment" in said([*runs, replace(runs[0], env="CBO/Ackley-v0")])
    assert "the file has runs of GP-UCB(beta=2) too" in said([*runs, replace(runs[0], agent="GP-UCB(beta=2)")])
    assert "played with cbo-gym 99.0, which is newer" in said([replace(run, version="99.0") for run in runs])
    assert "was not isolated" in said([replace(run, isolated=False) for run in runs])
    assert "was blind" in said([replace(run, secret="ab" * 16) for run in runs])
    assert "no run has finished" in said([replace(run, status="failed") for run in runs])
    elsewhere = [replace(run, env="CBO/Custom-v0(problem='a.yaml')") for run in runs]
    assert "is not a registered environment" in said(elsewhere)
    blind = replace(runs[0], env="CBO/BinaryTree-v0(depth=3, instance=5)", secret="ab" * 16)
    assert env_label(blind) == "CBO/BinaryTree-v0(depth=3), T=4, blind"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CARD + "knows: [optimum]\n", "field knows.0"),
        (CARD.replace("contact: me\n", ""), "field contact: Field required"),
        (CARD.replace("suite: tiny\n", ""), "field suite: Field required"),
        (CARD + "hardwar: 1\n", "did you mean 'hardware'"),
        (CARD.replace(AGENT, "''"), "field agent"),
        ("- a list", "not a card of a submission"),
        ("a: [", "cannot read"),
    ],
)
def test_cards_that_are_wrong_are_named(tmp_path, text, message):
    (tmp_path / "card.yaml").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_card(tmp_path / "card.yaml")
    with pytest.raises(ValueError, match=r"cannot read .*none\.yaml"):
        read_card(tmp_path / "none.yaml")


def with_score(run, score):
    """The run, had every action and recommendation earned so much of what lies between random play and the optimum."""
    regret = (1.0 - score) * (run.optimum - run.random_value)
    lost = {name: pl.lit(regret) for name in ("instant_regret", "average_regret", "simple_regret")}
    reward = pl.lit(run.optimum - regret).alias("average_reward")
    return replace(run, table=run.table.with_columns(reward, **lost))


def test_a_loss_in_blind_play_is_distinguished_from_chance(folder):
    run = next(iter(load_runs(folder)))

    def found(told, blind):
        both = (tuple(with_score(run, score) for score in part) for part in (told, blind))
        return list(describe_drops([BlindPlay(run.env, *both, ())]))

    assert found([0.9, 0.8, 1.0, 0.9, 0.95], [0.8, 0.9, 0.7]) == []
    knows = found([1.0, 1.0, 1.0], [0.05, 0.0, 0.1])
    assert [" as submitted and " in line for line in knows] == [True, True]
    assert min_loss(np.ones(3), np.zeros(3), 0.99) == 1.0
    assert min_loss(np.ones(1), np.zeros(3), 0.99) == -np.inf


def test_runs_that_part_gain_no_more_than_by_chance(folder):
    run = next(iter(load_runs(folder)))
    rng = np.random.default_rng(3)

    def diverged(values):
        return list(describe_gains([Replay(run, "diverges", ("machine",), "", tuple(gain)) for gain in values]))

    forged = 0.05 + 0.02 * rng.standard_normal((8, 2))
    assert "which is not chance" in str(diverged(forged))
    assert diverged(forged[:4]) == []
    honest = sum(bool(diverged(0.05 * rng.standard_normal((10, 2)))) for _ in range(400))
    assert honest <= 10  # 1 % are expected; 2.5 % are three deviations more
    elsewhere = replace(with_score(run, 0.5), machine="another")
    found = compare_runs(elsewhere, with_score(run, 0.45))
    assert (found.verdict, tuple(np.round(found.gain, 6))) == ("diverges", (0.05, 0.05))
