"""Files of versions to come lie where files of this one are read: each says so, and stays as it is."""

import shutil
import warnings
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from cbo_gym import sweep
from cbo_gym.cli import app
from cbo_gym.evaluation.store.codec import SCHEMA
from cbo_gym.evaluation.store.published import publish
from tests.trials.helpers import essences, forged, say

pytestmark = pytest.mark.slow

GRID = {"agents": ["Random"], "envs": ["CBO/Dropwave-v0"], "seeds": range(4), "horizon": 3, "n_jobs": 2}
WORDS = ["-a", "Random", "-e", "CBO/Dropwave-v0", "--seeds", "4", "--horizon", "3", "--jobs", "2"]
CARD = "agent: Random\nsuite: survey2026\npaper: none\ncode: none\ncontact: none\nhardware: none\n"
NEWER_RUNS = {  # what a version to come may store otherwise
    "another field": {"version": "99.0", "colour": "red"},
    "another status": {"version": "99.0", "status": "paused"},
    "another mode": {"version": "99.0", "mode": "telepathic"},
    "a field of another kind": {"version": "99.0", "seed": {"of": "noise", "is": 1}},
}
NEWER_STORES = {
    "the next schema": {"schema": SCHEMA + 1},
    "a schema far off": {"schema": 10**6},
    "a schema of another kind": {"schema": "2026.1"},
    "a schema with more about it": {"schema": SCHEMA + 1, "colour": "red", "runs": None},
}


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    folder = tmp_path_factory.mktemp("played") / "runs"
    sweep(folder=folder, **GRID)
    return folder


@pytest.fixture
def there(played, tmp_path):
    """A folder of runs, one that is added later, and a store with a submission of the same."""
    folder, store = tmp_path / "runs", tmp_path / "store"
    shutil.copytree(played, folder)
    publish(folder, store, "mine")
    (tmp_path / "card.yaml").write_text(CARD)
    return SimpleNamespace(folder=folder, store=store, part=store / "mine.parquet", card=tmp_path / "card.yaml")


def invoke(*words):
    """Exit status, and all that is printed, warnings among it."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def contents(*folders):
    return {path: path.read_bytes() for folder in folders for path in folder.rglob("*") if path.suffix == ".parquet"}


def is_said(output, path, word):
    """In one line that names the file, what it is of, and the remedy."""
    lines = [line for line in output.splitlines() if str(path) in line]
    return len(lines) == 1 and word in lines[0] and "install" in lines[0] and "newer" in lines[0]


@pytest.mark.parametrize("what", NEWER_RUNS)
def test_a_run_of_a_newer_version(there, played, what):
    path = sorted(there.folder.glob("*.parquet"))[1]
    forged(path, **NEWER_RUNS[what])
    before = contents(there.folder, there.store)
    said = {
        "leaderboard": (0, invoke("leaderboard", there.folder, "--out", there.folder.parent / "report")),
        "compare": (2, invoke("compare", there.folder, "Random", "CBO")),
        "publish": (2, invoke("publish", there.folder, "--store", there.store)),
        "sweep": (2, invoke("sweep", there.folder, *WORDS)),
    }
    say(f"a newer run, {what}", *(f"{name} ends with {code}" for name, (_, (code, _)) in said.items()))
    for name, (code, done) in said.items():
        assert done[0] == code, (name, done)
        assert is_said(done[1], path, "99.0"), (name, done)
    assert contents(there.folder, there.store) == before
    path.rename(there.folder.parent / path.name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sweep(folder=there.folder, **GRID) == {"finished": 4, "failed": 0, "skipped": 0, "resumed": 3}
    assert essences(there.folder) == essences(played)


@pytest.mark.parametrize("what", NEWER_STORES)
def test_a_store_of_a_newer_version(there, what):
    forged(there.part, **NEWER_STORES[what])
    before = contents(there.folder, there.store)
    said = {
        "leaderboard": invoke("leaderboard", there.store),
        "compare": invoke("compare", there.store, "Random", "CBO"),
        "leaderboard --out": invoke("leaderboard", there.store, "--out", there.folder.parent / "report"),
        "publish": invoke("publish", there.folder, "--store", there.store, "--suite", "mine"),
        "verify": invoke("verify", there.store),
        "check-submission": invoke("check-submission", there.part, "--card", there.card),
        "sweep --skip-published": invoke("sweep", there.folder, *WORDS, "--skip-published", there.store),
    }
    say(f"a newer store, {what}", *(f"{name} ends with {code}" for name, (code, _) in said.items()))
    for name, (code, output) in said.items():
        assert code == 2, (name, output)
        assert is_said(output, there.part, str(NEWER_STORES[what]["schema"])), (name, output)
    assert contents(there.folder, there.store) == before
    assert not (there.folder.parent / "report").exists()


def test_beside_a_newer_file_others_are_published(there):
    forged(there.part, schema=SCHEMA + 1)
    before = there.part.read_bytes()
    code, output = invoke("publish", there.folder, "--store", there.store, "--suite", "other")
    assert (code, there.part.read_bytes()) == (0, before), output
