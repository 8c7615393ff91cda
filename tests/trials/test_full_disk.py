"""A disk of a mebibyte fills up under each command that writes: an error names the place, and nothing is lost."""

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

import cbo_gym
from cbo_gym import sweep
from cbo_gym.evaluation import load_published, load_runs, publish
from tests.trials.helpers import essences, say

pytestmark = pytest.mark.slow

ROOT = Path(cbo_gym.__file__).parent.parent
FULL = "No space left on device"
ENV = "CBO/Dropwave-v0"
MARKERS = "before\n<!-- results: begin -->\n<!-- results: end -->\nafter\n"


class Disk:
    """A file system of its own in memory."""

    def __init__(self, folder):
        self.folder = folder

    def resize(self, *options):
        subprocess.run(["mount", "-o", ",".join(["remount", *options]), str(self.folder)], check=True)

    def fill(self, leave=0):
        """Leave so many bytes of room."""
        left = os.statvfs(self.folder)
        (self.folder / "filler").write_bytes(bytes(max(0, left.f_bavail * left.f_frsize - leave)))

    def free(self):
        (self.folder / "filler").unlink()

    def files(self):
        return {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}


@pytest.fixture
def disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    try:
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no mount here")
    if done.returncode:
        pytest.skip("only root may mount, on Linux")
    yield Disk(folder)
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    folder = tmp_path_factory.mktemp("played") / "runs"
    sweep(["Random"], [ENV], range(40), folder, horizon=20, n_jobs=2)
    return folder


def invoke(*words, stdout=subprocess.PIPE):
    """Exit status, and what is said; neither a traceback nor anything but the one error."""
    done = subprocess.run(
        [sys.executable, "-m", "cbo_gym", *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=300,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, [line for line in done.stderr.splitlines() if line.startswith("Error:")]


def is_refused(told, path):
    code, errors = told
    say("a full disk", *errors)
    assert (code, len(errors)) == (2, 1), told
    assert FULL in errors[0]
    assert str(path) in errors[0]


def hidden(folder):
    """Temporary files, and whatever else is not meant to be seen."""
    return [path for path in folder.rglob(".*") if path.is_file()]


def test_a_sweep_on_a_disk_that_is_full(disk):
    disk.fill()
    before = disk.files()
    words = ["sweep", disk.folder / "runs", "-a", "Random", "-e", ENV, "--seeds", 3, "--horizon", 3, "--jobs", 2]
    is_refused(invoke(*words), disk.folder / "runs")
    assert disk.files() == before
    disk.free()
    assert invoke(*words)[0] == 0
    assert len(list(load_runs(disk.folder / "runs"))) == 3


def test_a_sweep_under_which_the_disk_fills_up(disk, tmp_path):
    folder, seeds = disk.folder / "runs", 200
    words = ["sweep", folder, "-a", "Random", "-e", ENV, "--seeds", seeds, "--horizon", 20, "--jobs", 2]
    start = time.monotonic()
    is_refused(invoke(*words), folder)
    kept = essences(folder)
    assert hidden(disk.folder) == []
    before = disk.files()
    is_refused(invoke(*words), folder)
    assert disk.files() == before
    disk.resize("size=16m")
    assert invoke(*words)[0] == 0
    sweep(["Random"], [ENV], range(seeds), tmp_path / "whole", horizon=20, n_jobs=2)
    after = essences(folder)
    say("a disk that fills up", f"{len(kept)} of {seeds} runs kept", f"{time.monotonic() - start:.0f} s")
    assert 10 < len(kept) < seeds
    assert kept.items() <= after.items()
    assert after == essences(tmp_path / "whole")


def test_a_sweep_without_room_for_another_file(disk):
    """There is room for bytes, but not for a name."""
    folder = disk.folder / "runs"
    disk.resize("nr_inodes=12")
    words = ["sweep", folder, "-a", "Random", "-e", ENV, "--seeds", 20, "--horizon", 3, "--jobs", 2]
    is_refused(invoke(*words), folder)
    kept = essences(folder)
    assert 3 < len(kept) < 12
    assert hidden(disk.folder) == []
    disk.resize("nr_inodes=100", "size=16m")
    assert invoke(*words)[0] == 0
    assert kept.items() <= essences(folder).items()


@pytest.mark.parametrize("leave", [0, 4096, 8192])
@pytest.mark.parametrize("submission", [False, True], ids=["store", "submission"])
def test_publishing(disk, played, tmp_path, leave, submission):
    store, more = disk.folder / "store", ["--submission"] if submission else []
    some = tmp_path / "some"
    some.mkdir()
    for path in sorted(played.iterdir())[:5]:
        with suppress(IsADirectoryError):
            (some / path.name).write_bytes(path.read_bytes())
    publish(some, store, "mine", submission=submission)
    disk.fill(leave)
    before = disk.files()
    words = ["publish", played, "--suite", "mine", "--store", store, *more]
    is_refused(invoke(*words), store / "mine.parquet")
    assert disk.files() == before
    assert len(load_published(store)) == 5
    disk.free()
    assert invoke(*words)[0] == 0
    assert len(load_published(store)) == 40


@pytest.mark.parametrize("leave", [0, 10_000, 100_000, 300_000])
def test_a_report(disk, played, leave):
    target = disk.folder / "report"
    disk.fill(leave)
    words = ["leaderboard", played, "--out", target, "--figures", "png", "--figures", "pdf", "--figures", "svg"]
    is_refused(invoke(*words), target)
    assert hidden(disk.folder) == []
    disk.free()
    disk.resize("size=16m")
    assert invoke(*words)[0] == 0
    assert (target / "report.html").exists()


def test_tables_in_a_file_of_ones_own(disk, played):
    readme = disk.folder / "README.md"
    readme.write_text(MARKERS)
    disk.fill()
    before = disk.files()
    words = ["leaderboard", played, "--markdown", readme, "--json"]
    is_refused(invoke(*words), readme)
    assert disk.files() == before
    disk.free()
    assert invoke(*words)[0] == 0
    assert "Random" in readme.read_text()


def test_a_single_run(disk):
    disk.fill()
    before = disk.files()
    words = ["run", "Random", ENV, "--horizon", 3, "--out", disk.folder / "run.parquet"]
    is_refused(invoke(*words), disk.folder)
    assert disk.files() == before
    disk.free()
    assert invoke(*words)[0] == 0


@pytest.mark.parametrize("words", [["--json"], ["--csv"], []], ids=["json", "csv", "table"])
def test_what_is_printed_into_a_file(disk, played, tmp_path, words):
    disk.fill()
    with (disk.folder / "printed").open("w") as file:
        code, errors = invoke("leaderboard", played, *words, *([] if words else ["--out", tmp_path]), stdout=file)
    say("printed to a full disk", f"status {code}", *errors)
    assert (code, len(errors)) == (2, 1)
    assert FULL in errors[0]
