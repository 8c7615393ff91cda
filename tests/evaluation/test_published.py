"""The store of published results: what goes in comes out, and nothing else is taken for it."""

import json
from dataclasses import replace
from io import BytesIO

import numpy as np
import polars as pl
import pytest

from cbo_gym import evaluate, leaderboard
from cbo_gym.agent_registry.labels import bare_name
from cbo_gym.errors import OperationError
from cbo_gym.evaluation import DamagedRunWarning, Run, load_published, load_runs, publish
from cbo_gym.evaluation.metrics.registry import METRICS
from cbo_gym.evaluation.runs.results import METADATA_KEY, encode_table, name_of, save_run
from cbo_gym.evaluation.seed_ranges import PUBLICATION
from cbo_gym.evaluation.store.finding import find_published
from cbo_gym.evaluation.store.published import HISTORY, is_published, package_store
from cbo_gym.evaluation.store.rounding import LEVELS
from tests.support.runs import STRICT

ENVS = ("CBO/CoCaFig1-v0", "CBO/ToyGraph-v0", "CBO/Alpine2-v0", "CBO/GPBandit1-v0", "CBO/SSEMPeriodic-v1")
ROUNDS = 20
SINGLE = 1e-6  # of what lies between random play and the optimum
OF_REWARDS = ("reward", "pseudo_regret", "average_pseudo_regret")
NOISE_FREE = "CBO/Alpine2-v0"  # of all others rewards are rounded


@pytest.fixture(scope="module")
def played():
    """A finished run of each mode but one, two seeds each, one that failed and one that was skipped."""
    runs = [evaluate("Random", env, seed, horizon=ROUNDS, recommend="powers") for env in ENVS for seed in range(2)]
    known = {"date": runs[0].date, "optimum": 1.0, "optimum_standard_error": 0.0, "random_value": 0.0}
    failed = Run("A", ENVS[2], 0, ROUNDS, "soft", "failed", "Traceback\n/home/me/a.py\nValueError: b", **known)
    return [*runs, failed, replace(failed, agent="B", status="skipped", error="B plays hard")]


def folder_of(path, runs):
    for run in runs:
        save_run(path / name_of(run), run)
    return path


@pytest.fixture
def store(played, tmp_path):
    publish(folder_of(tmp_path / "mine", played), tmp_path / "results")
    return tmp_path / "results"


def by_cell(runs):
    return {(run.agent, run.env, run.seed): run for run in runs}


def test_what_is_published_comes_back_in_single_precision_and_noisy_rewards_to_what_they_tell(played, store):
    back, full = by_cell(load_published(store)), by_cell(played)
    assert set(back) == set(full)
    for cell, run in full.items():
        shorter = run.error.splitlines()[-1] if run.error else ""
        assert back[cell] == replace(run, error=shorter)
        assert back[cell].table.height == run.table.height
        for name in run.table.columns:
            ours, theirs = run.table[name], back[cell].table[name] if name in back[cell].table.columns else None
            if name in ("context", "recommended"):
                assert theirs is None
            elif name in ("action", "nodes", "expected_reward_standard_error", "recommended_reward_standard_error"):
                assert theirs.null_count() == ROUNDS
            elif name.endswith("_seconds"):
                np.testing.assert_allclose(theirs.to_numpy(), ours.mean(), rtol=1e-6)
            else:
                assert theirs.dtype == ours.dtype
                assert theirs.is_null().equals(ours.is_null())
                slack = SINGLE * ROUNDS * max(run.optimum - run.random_value, abs(run.optimum))
                if name in OF_REWARDS and run.env != NOISE_FREE:
                    slack += (run.optimum - run.random_value) / LEVELS
                np.testing.assert_allclose(theirs.to_numpy(), ours.to_numpy(), rtol=1e-6, atol=slack)


def test_the_leaderboard_is_that_of_the_full_runs(played, store):
    ours, full = leaderboard(load_published(store)), leaderboard(played)
    assert ours.overall["agent"].to_list() == full.overall["agent"].to_list()
    for name in set(METRICS) & set(full.per_env.columns):
        np.testing.assert_allclose(
            ours.per_env[name].cast(float).to_numpy(), full.per_env[name].cast(float).to_numpy(), rtol=1e-5, atol=1e-5
        )
    assert ours.choices.equals(full.choices)
    assert (len(ours.failed), len(ours.skipped)) == (1, 1)


def test_gaps_that_hang_on_more_digits_are_kept(tmp_path):
    """GAP counts the rounds to the last improvement, here one that single precision has not."""
    run = evaluate("Random", "CBO/Alpine2-v0", 0, horizon=ROUNDS)
    regrets = np.where(np.arange(ROUNDS) < 15, 128.0, 128.0 - 2e-6)
    assert np.ptp(regrets.astype(np.float32)) == 0.0
    table = run.table.with_columns(instant_regret=regrets, best_so_far_regret=regrets)
    changed = replace(run, table=table, initial_expected=0.0)
    publish(folder_of(tmp_path / "mine", [changed]), tmp_path)
    (back,) = load_published(tmp_path)
    ours, full = (leaderboard([one]).per_env["gap_20"][0] for one in (back, changed))
    assert ours == pytest.approx(full, abs=1e-9)
    assert full == pytest.approx(((1 - 128 / run.optimum) + 4 / 20) / (1 + 19 / 20), abs=1e-6)  # in round 16
    # a column of another meaning is kept rather than worked out
    feasible = run.table["best_so_far_regret"] + 1.0
    other = replace(run, seed=1, table=run.table.with_columns(feasible))
    publish(folder_of(tmp_path / "other", [other]), tmp_path / "store")
    (back,) = load_published(tmp_path / "store")
    np.testing.assert_allclose(back.table["best_so_far_regret"].to_numpy(), feasible.to_numpy(), rtol=1e-6)


def test_publishing_again_changes_nothing_and_newer_runs_replace_older_ones(played, store, tmp_path):
    before = (store / "mine.parquet").read_bytes()
    again = publish(tmp_path / "mine", store)
    assert (again.added, again.replaced, again.unchanged, again.outdated) == (0, 0, len(played), len(played))
    assert (store / "mine.parquet").read_bytes() == before
    later = replace(played[0], date="2999-01-01T00:00:00+00:00", machine="another")
    older = replace(played[1], date="2000-01-01T00:00:00+00:00", machine="another")
    done = publish(folder_of(tmp_path / "more", [later, older, replace(later, seed=7)]), store, "mine")
    assert (done.added, done.replaced, done.unchanged, done.outdated) == (1, 1, len(played) - 1, 1)
    back = by_cell(load_published(store))
    machines = [back["Random", ENVS[0], seed].machine for seed in (0, 1, 7)]
    assert machines == ["another", played[1].machine, "another"]


def test_of_a_suite_only_its_environments_are_taken(played, tmp_path):
    folder = folder_of(tmp_path / "mine", [replace(run, seed=PUBLICATION.start + run.seed) for run in played])
    done = publish(folder, tmp_path, "cocabo2023")
    assert (done.path.name, done.added, done.left_out) == ("cocabo2023.parquet", 2, len(played) - 2)
    assert {run.env for run in load_published(tmp_path, "cocabo2023")} == {"CBO/CoCaFig1-v0"}
    for given, name, message in (
        (folder_of(tmp_path / "other", played[:2]), "survey2026", "environments that are not of the suite survey2026"),
        (folder, "../mine", "lower case letters"),
        (tmp_path / "none", None, "there is no folder"),
    ):
        with pytest.raises(ValueError, match=message):
            publish(given, tmp_path, name)


def test_damaged_runs_are_not_published(played, store, tmp_path):
    path = tmp_path / "mine" / name_of(played[0])
    path.write_bytes(path.read_bytes()[:-1])
    before = (store / "mine.parquet").read_bytes()
    with pytest.raises(ValueError, match="damaged"):
        publish(tmp_path / "mine", store)
    assert (store / "mine.parquet").read_bytes() == before


def test_no_bit_of_the_store_changes_unnoticed(store):
    path = store / "mine.parquet"
    content = path.read_bytes()
    for bit in np.random.default_rng(0).choice(8 * len(content), 50, replace=False):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(changed)
        with pytest.raises(ValueError, match=r"mine\.parquet"):
            load_published(store)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.drop("key"), "columns are wrong: key"),
        (lambda frame: frame.drop("reward"), "columns are wrong: reward"),
        (lambda frame: frame.with_columns(colour=pl.lit("red")), "columns are wrong: colour"),
        (lambda frame: frame.with_columns(pl.col("seed").cast(pl.String)), "columns are wrong: seed"),
        (lambda frame: frame.with_columns(seed=pl.col("seed") + 5), "does not match its key"),
        (lambda frame: frame.with_columns(pl.col("reward").list.head(3)), "20 rounds in all of its curves"),
        (lambda frame: frame.with_columns(mode=pl.lit("banana")), "banana"),
        (lambda frame: frame.with_columns(libraries=pl.lit("{")), "no published results"),
        (lambda frame: frame.with_columns(sources=pl.lit("[]")), "sources"),
    ],
)
def test_files_of_another_kind_are_refused(store, change, message):
    """With a checksum that fits, as a third-party program would write it."""
    path = store / "mine.parquet"
    about = json.loads(pl.read_parquet_metadata(path)[METADATA_KEY])
    del about["checksum"]
    frame = pl.read_parquet(path)
    path.write_bytes(encode_table(change(frame), about))
    with pytest.raises(ValueError, match=message):
        load_published(store)


def test_other_schemas_and_single_runs_are_named(played, store, tmp_path):
    path = store / "mine.parquet"
    path.write_bytes(encode_table(pl.read_parquet(path), {"schema": 4}))
    before = path.read_bytes()
    for read in (load_published, lambda store: publish(tmp_path / "mine", store)):
        with pytest.raises(ValueError, match=r"mine\.parquet .*its schema is 4, this version reads 3; install a newer"):
            read(store)
    publish(tmp_path / "mine", store, "other").path.unlink()
    assert path.read_bytes() == before
    assert is_published(store)
    assert not is_published(tmp_path / "mine")
    with pytest.raises(ValueError, match="it is a single run; cbo-gym publish"):
        load_published(tmp_path / "mine")
    with pytest.warns(DamagedRunWarning, match=r"mine\.parquet is not a result"):
        assert list(load_runs(store)) == []
    buffer = BytesIO()
    pl.DataFrame({"a": [1]}).write_parquet(buffer)
    path.write_bytes(buffer.getvalue())
    with pytest.raises(ValueError, match="no checksum"):
        load_published(path)
    assert not is_published(path)


def test_what_is_not_there_is_named(store, monkeypatch, tmp_path):
    with pytest.raises(ValueError, match=r"no published results .*yours\.parquet; there are mine"):
        load_published(store, "yours")
    with pytest.raises(ValueError, match="no published results"):
        load_published(tmp_path / "none")
    assert package_store().name == "results"
    with pytest.raises(ValueError, match="no published results nowhere, neither here nor in the package, which has ag"):
        load_published("nowhere")
    monkeypatch.setattr("cbo_gym.evaluation.store.published.suites_path", lambda: tmp_path / "nowhere" / "suites.yaml")
    with pytest.raises(OperationError, match="missing from this installation"):
        load_published()


def test_results_of_the_package_are_loaded_by_name(tmp_path, monkeypatch):
    runs = load_published("cbou2025")
    assert runs == load_published(suite="cbou2025")
    assert {bare_name(run.env) for run in runs} <= {f"CBO/ErdosRenyi{size}-v0" for size in (10, 20, 100)}
    found = find_published(runs[3].id[:12], "cbou2025")
    assert (found, len(found.id)) == (runs[3], 24)
    assert len({run.id for run in runs}) == len(runs)
    with pytest.raises(ValueError, match=r"no published run has the id 000000; .* store .* names others than"):
        find_published("000000", "cbou2025")
    with pytest.raises(ValueError, match="an id has 24 digits"):
        find_published("5f")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cbou2025").mkdir()
    assert load_published("cbou2025") == []  # what is here goes first


def test_runs_that_a_suite_takes_no_more_are_set_aside(tmp_path, monkeypatch):
    runs = [evaluate("Random", "CBO/Dropwave-v0", seed, horizon=2) for seed in (0, 1, PUBLICATION.start)]
    publish(folder_of(tmp_path / "old", runs[:2]), tmp_path / "store", "strict")
    monkeypatch.setattr("cbo_gym.evaluation.store.published.load_all", lambda: (STRICT,))
    done = publish(folder_of(tmp_path / "new", runs[2:]), tmp_path / "store", "strict")
    assert (done.added, done.unchanged) == (1, 0)
    assert load_published(tmp_path / "store") == runs[2:]
    assert [run.seed for run in load_published(tmp_path / "store" / HISTORY, "strict")] == [0, 1]
    assert find_published(runs[1].id, tmp_path / "store") == runs[1]  # an id stays
    before = {path: path.read_bytes() for path in tmp_path.rglob("strict.parquet")}
    publish(tmp_path / "new", tmp_path / "store", "strict")
    assert {path: path.read_bytes() for path in before} == before


def test_runs_that_newer_ones_replace_are_set_aside_and_their_ids_stay(tmp_path):
    store, first = tmp_path / "store", evaluate("Random", "CBO/Dropwave-v0", 0, horizon=2)
    codes = [
        replace(first, sources={"a": code}, date=f"{day}-01-01T00:00:00+00:00")
        for day, code in ((2098, "b"), (2099, "c"))
    ]
    publish(folder_of(tmp_path / "one", [first]), store, "mine")
    for name, run in zip("bc", codes, strict=True):
        done = publish(folder_of(tmp_path / name, [run]), store, "mine")
        assert (done.added, done.replaced) == (0, 1)
    assert load_published(store) == codes[1:]
    assert [find_published(run.id, store).id for run in [first, *codes]] == [run.id for run in [first, *codes]]
    same = replace(codes[1], date="2100-01-01T00:00:00+00:00", machine="another")
    publish(folder_of(tmp_path / "same", [same]), store, "mine")  # under the id that it has
    assert {run.id for run in load_published(store / HISTORY)} == {first.id, codes[0].id}
    others = [replace(first, **change) for change in ({"seed": 9}, {"agent": "A"}, {"sources": {}}, {"horizon": 21})]
    assert len({run.id for run in [first, *others]}) == 5


def test_a_store_that_grows_too_large_is_left_as_it_was(played, store, tmp_path, monkeypatch):
    monkeypatch.setattr("cbo_gym.evaluation.store.published.MAX_BYTES", (store / "mine.parquet").stat().st_size)
    with pytest.raises(ValueError, match=r"at most .* may be"):
        publish(folder_of(tmp_path / "more", [replace(played[0], seed=7)]), store)
    assert [path.name for path in store.iterdir()] == ["mine.parquet"]
