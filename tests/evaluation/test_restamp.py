"""Which of the published runs today's code gives too: a sample is played again, and the store told of it."""

from dataclasses import replace

import polars as pl
import pytest

from cbo_gym import evaluate
from cbo_gym.evaluation import load_published
from cbo_gym.evaluation.report.tables import mixtures
from cbo_gym.evaluation.runs.code_now import Today, code_of
from cbo_gym.evaluation.runs.machine import processor_of
from cbo_gym.evaluation.runs.results import sealed
from cbo_gym.evaluation.store.published import put
from cbo_gym.evaluation.store.restamping import write_restamps
from cbo_gym.evaluation.verify import restamping
from cbo_gym.evaluation.verify.replay import Replay
from cbo_gym.evaluation.verify.restamping import outdated, restamp
from tests.test_cli import invoke

ENV, OTHER = "CBO/Dropwave-v0", "CBO/ToyGraph-v0"
NEW = {ENV: "tree+1", "cbo_gym.agents.baselines.random": "tree+2"}
OLD = {"cbo_gym": "0.2.0+5f2c1e0b9a77", "cbo_gym.agents": "0.2.0+b0737fc1937c"}


@pytest.fixture(scope="module")
def played():
    return [evaluate("Random", ENV, seed, horizon=3) for seed in range(12)] + [
        evaluate("Random", OTHER, seed, horizon=3) for seed in range(2)
    ]


def stored(played, folder):
    """Twelve runs of old code that plays as today's, two that do not, and two of an agent that is gone."""
    wrong = [run.table.with_columns(reward=pl.col("reward") + 0.5) for run in played[12:]]
    old = [*played[:12], *(replace(run, table=table) for run, table in zip(played[12:], wrong, strict=True))]
    runs = [*old, replace(played[0], agent="Gone"), replace(played[1], agent="Gone", status="failed")]
    put(folder / "mine.parquet", [replace(run, sources=OLD) for run in runs])
    return folder / "mine.parquet"


@pytest.fixture
def path(played, tmp_path):
    return stored(played, tmp_path)


@pytest.fixture(scope="module")
def looked_at(played, tmp_path_factory):
    """The runs before and after, what was said, and the file."""
    path = stored(played, tmp_path_factory.mktemp("store"))
    before = load_published(path)
    said = invoke("verify", str(path), "--restamp", code=1)
    return before, load_published(path), said, path


@pytest.fixture
def faked(monkeypatch):
    """Replays that come out identical without being played."""
    monkeypatch.setattr(
        restamping,
        "replays",
        lambda runs, **how: (Replay(run, "identical", ("code",), "", again=replace(run, sources=NEW)) for run in runs),
    )


def test_a_group_whose_sample_comes_out_again_is_of_todays_code(looked_at, played):
    before, after, _, path = looked_at
    assert [replace(run, restamps=()) for run in after] == before
    assert [run.table.equals(other.table) for run, other in zip(after, before, strict=True)] == [True] * len(before)
    assert [run.id for run in after] == [run.id for run in before]
    for run in after:
        today = (run.agent, run.env) == ("Random", ENV)
        assert Today(after).gives(run) == today
        assert code_of(run) == (played[0].sources if today else OLD)
        other = (run.agent, run.env) == ("Random", OTHER)
        assert [(look.replayed, look.runs) for look in run.restamps] == [(2, 12)] * today + [(1, 2)] * other
        assert [bool(look.why) for look in run.restamps] == [False] * today + [True] * other
    left = {(group.runs[0].agent, group.runs[0].env, len(group.runs), len(group.sample)) for group in outdated(path)}
    assert left == {("Random", OTHER, 2, 0), ("Gone", ENV, 2, 1)}  # what is known to differ is not played again
    known = next(group for group in outdated(path) if group.known)
    (look,) = restamp([known])
    assert look.outcome == "differs"
    assert look.why == known.runs[0].restamps[-1].why


def test_the_command_names_what_is_to_be_played_anew(looked_at):
    said = looked_at[2]
    assert "16 runs in 3 groups are not of today's code; 4 of them are played again" in said
    assert "1 groups restamped: 2 runs came out identical, and stand for 12; the other 10 of these were not" in said
    assert "2 groups were not restamped." in said
    assert f"Random {OTHER}, T=3 2 1 differs seed" in said
    assert "Gone" in said
    assert "not installed here" in said


def test_nothing_follows_from_a_difference_on_another_processors_kernels(path, played, monkeypatch):
    blas = played[0].libraries["blas"]
    library = " ".join(blas.split()[:2])

    def looks(kernel, machine=played[0].machine):
        libraries = played[0].libraries | {"blas": kernel}
        elsewhere = [replace(run, libraries=libraries, machine=machine) for run in played[:2]]
        monkeypatch.setattr(
            restamping,
            "replays",
            lambda runs, **how: (Replay(run, "parts", (), "later", again=played[0]) for run in runs),
        )
        return list(restamp([restamping.Group(path, tuple(elsewhere), tuple(elsewhere))]))

    before = path.read_bytes()
    (look,) = looks(f"{library} Haswell" if "Haswell" not in blas else f"{library} SkylakeX")
    assert look.outcome == "skipped"
    assert "OPENBLAS_CORETYPE=" in look.why
    assert "that nobody recorded" in looks(library)[0].why
    (look,) = looks(blas, "64 cores, an abacus")
    assert (look.outcome, look.why.rpartition(": ")[2]) == ("skipped", "it was played on an abacus")
    assert path.read_bytes() == before
    monkeypatch.setattr(restamping, "write_restamps", lambda *told: None)  # these are in no file
    (look,) = looks(blas, f"64 cores, {processor_of(played[0].machine)}")
    assert look.outcome == "differs"  # on the number of cores nothing depends


def test_an_interrupted_look_is_taken_up(path, monkeypatch, faked):
    monkeypatch.setattr(restamping, "BATCH_SECONDS", -1.0)  # a file is written after each group
    groups = outdated(path)
    looks = restamp(groups)
    assert next(looks).outcome == "restamped"
    looks.close()
    assert sum(bool(run.restamps) for run in load_published(path)) == len(groups[0].runs)
    list(restamp(groups[1:]))
    assert all(code_of(run) == NEW for run in load_published(path))


def test_tables_say_what_they_mix(path, played, faked):
    other = [replace(run, seed=run.seed + 50, sources=NEW) for run in played[:12]]

    def said():
        return mixtures([run for run in load_published(path) if run.agent == "Random"][:12] + other)

    assert f"Mixed code of environments: {ENV} (2 codes)" in said()
    assert "Mixed code of agents: Random (2 codes)" in said()
    list(restamp(outdated(path)))
    assert not any("code of" in one for one in said())
    assert any(one.startswith("12 runs are of earlier code; of each agent on each environment some") for one in said())


def test_agents_of_their_own_codes_are_no_mixture(played):
    ours = evaluate("UCB", "CBO/IVBandit-v0", 0, horizon=2)
    assert not any("code of" in one for one in mixtures([*played, ours]))


def test_a_stranger_to_the_file_is_refused_and_nothing_written(path):
    content = path.read_bytes()
    with pytest.raises(ValueError, match="has no run 5f2c"):
        write_restamps(path, {"5f2c": None})
    assert path.read_bytes() == content


def test_a_damaged_restamp_is_named(path, played):
    content = pl.read_parquet(path).with_columns(restamps=pl.lit('[{"sources": {}}]'))
    path.write_bytes(sealed(content, {"schema": 3}))
    with pytest.raises(ValueError, match="libraries"):
        load_published(path)
