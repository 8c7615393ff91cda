"""A disk of a mebibyte fills up under each command that writes: an error names the place, and nothing is lost."""

import os
import shutil
import subprocess
import time

import pytest

from cbo_gym import sweep
from cbo_gym.evaluation import load_published, load_runs, publish
from tests.trials.helpers import command, essences, say

pytestmark = pytest.mark.slow

FULL = "No space left on device"
ENV = "CBO/Dropwave-v0"
MARKERS = "before\n<!-- results: begin -->\n<!-- results: end -->\nafter\n"


class Disk:
    """A file system in memory."""

    def __init__(self, folder):
        self.folder = folder

    def resize(self, *options):
        subprocess.run(["mount", "-o", ",".join(["remount", *options]), str(self.folder)], check=True)

    def fill(self, leave=0):
        """Leave so many bytes free."""
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


def invoke(*words, **options):
    """Exit status, and the errors on the command line."""
    code, _, errors = command(*words, **options)
    return code, [line for line in errors.splitlines() if line.startswith("Error:")]


def is_refused(disk, words, path):
    """With one error that names the path, and nothing on the disk is changed."""
    before = disk.files()
    code, errors = invoke(*words)
    say("a full disk", *errors)
    assert (code, len(errors)) == (2, 1)
    assert FULL in errors[0]
    assert str(path) in errors[0]
    assert disk.files() == before
    assert hidden(disk.folder) == []


def hidden(folder):
    """Temporary files, and others that are not meant to be seen."""
    return [path for path in folder.rglob(".*") if path.is_file()]


def sweep_into(folder, seeds, horizon=3):
    options = f"-a Random -e {ENV} --seeds {seeds} --horizon {horizon} --jobs 2"
    return ["sweep", folder, *options.split()]


def test_a_sweep_on_a_disk_that_is_full(disk):
    disk.fill()
    words = sweep_into(disk.folder / "runs", seeds=3)
    is_refused(disk, words, disk.folder / "runs")
    disk.free()
    assert invoke(*words)[0] == 0
    assert len(list(load_runs(disk.folder / "runs"))) == 3


def test_a_sweep_under_which_the_disk_fills_up(disk, tmp_path):
    folder, seeds, start = disk.folder / "runs", 200, time.monotonic()
    words = sweep_into(folder, seeds, horizon=20)
    code, (error,) = invoke(*words)
    assert (code, FULL in error, str(folder) in error) == (2, True, True), error
    kept = essences(folder)
    is_refused(disk, words, folder)
    disk.resize("size=16m")
    assert invoke(*words)[0] == 0
    sweep(["Random"], [ENV], range(seeds), tmp_path / "whole", horizon=20, n_jobs=2)
    after = essences(folder)
    say("a disk that fills up", f"{len(kept)} of {seeds} runs kept", f"{time.monotonic() - start:.0f} s")
    assert 10 < len(kept) < seeds
    assert kept.items() <= after.items()
    assert after == essences(tmp_path / "whole")


def test_a_sweep_without_space_for_another_file(disk):
    """There is space for bytes, but not for a name."""
    folder = disk.folder / "runs"
    disk.resize("nr_inodes=12")
    words = sweep_into(folder, seeds=20)
    code, (error,) = invoke(*words)
    assert (code, FULL in error, str(folder) in error) == (2, True, True), error
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
    (tmp_path / "some").mkdir()
    for path in sorted(path for path in played.iterdir() if path.is_file())[:5]:
        shutil.copy(path, tmp_path / "some")
    publish(tmp_path / "some", store, "mine", submission=submission)
    disk.fill(leave)
    words = ["publish", played, "--suite", "mine", "--store", store, *more]
    is_refused(disk, words, store / "mine.parquet")
    assert len(load_published(store)) == 5
    disk.free()
    assert invoke(*words)[0] == 0
    assert len(load_published(store)) == 40


@pytest.mark.parametrize("leave", [0, 10_000, 100_000, 300_000])
def test_a_report(disk, played, leave):
    target = disk.folder / "report"
    disk.fill(leave)
    words = ["leaderboard", played, "--out", target, "--figures", "png", "--figures", "pdf", "--figures", "svg"]
    code, (error,) = invoke(*words)
    assert (code, FULL in error, str(target) in error) == (2, True, True), error
    assert hidden(disk.folder) == []
    disk.free()
    disk.resize("size=16m")
    assert invoke(*words)[0] == 0
    assert (target / "report.html").exists()


@pytest.mark.parametrize("what", ["tables in a file of the user", "a single run"])
def test_one_file(disk, played, what):
    readme = disk.folder / "README.md"
    words, path = ["run", "Random", ENV, "--horizon", 3, "--out", disk.folder / "run.parquet"], disk.folder
    if what != "a single run":
        words, path = ["leaderboard", played, "--markdown", readme, "--json"], readme
        readme.write_text(MARKERS)
    disk.fill()
    is_refused(disk, words, path)
    disk.free()
    assert invoke(*words)[0] == 0
    assert not readme.exists() or "Random" in readme.read_text()


@pytest.mark.parametrize("words", [["--json"], ["--csv"], []], ids=["json", "csv", "table"])
def test_what_is_printed_into_a_file(disk, played, tmp_path, words):
    disk.fill()
    with (disk.folder / "printed").open("w") as file:
        code, errors = invoke("leaderboard", played, *words, *([] if words else ["--out", tmp_path]), stdout=file)
    say("printed to a full disk", f"status {code}", *errors)
    assert (code, len(errors)) == (2, 1)
    assert FULL in errors[0]
