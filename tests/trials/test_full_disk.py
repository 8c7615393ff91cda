"""A disk of a mebibyte fills up under each command that writes: an error names the place, and nothing is lost."""

import os
import shutil
import subprocess

import pytest

from cbo_gym import sweep
from cbo_gym.evaluation import load_published, load_runs, publish
from tests.trials.helpers import command, essences

pytestmark = pytest.mark.slow

FULL = "No space left on device"
ENV = "CBO/Dropwave-v0"


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
        self.resize("size=16m")

    def files(self):
        return {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}

    def require_full(self, words, place="", **options):
        """Assert that a command ends with one error, which names a place, and that no temporary file is left."""
        code, _, errors = command(*words, **options)
        (error,) = [line for line in errors.splitlines() if line.startswith("Error:")]
        assert (code, FULL in error, str(place) in error) == (2, True, True), error
        assert [path for path in self.folder.rglob(".*") if path.is_file()] == []


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


def sweep_into(folder, seeds, horizon=3):
    return ["sweep", folder, *f"-a Random -e {ENV} --seeds {seeds} --horizon {horizon} --jobs 2".split()]


@pytest.mark.parametrize("limit", ["size=1m", "nr_inodes=12"], ids=["bytes", "names"])
def test_a_sweep_under_which_the_disk_fills_up(disk, tmp_path, limit):
    folder, seeds = disk.folder / "runs", 200
    disk.resize(limit)
    words = sweep_into(folder, seeds, horizon=20)
    disk.require_full(words, folder)
    kept = essences(folder)
    disk.resize("size=16m", "nr_inodes=1000")
    assert command(*words)[0] == 0
    sweep(["Random"], [ENV], range(seeds), tmp_path / "whole", horizon=20, n_jobs=2)
    after = essences(folder)
    assert 3 < len(kept) < seeds
    assert kept.items() <= after.items()
    assert after == essences(tmp_path / "whole")


@pytest.mark.parametrize("leave", [0, 8192])
def test_what_writes_files_changes_none_and_works_once_there_is_space(disk, played, tmp_path, leave):
    store, readme = disk.folder / "store", disk.folder / "README.md"
    readme.write_text("before\n<!-- results: begin -->\n<!-- results: end -->\nafter\n")
    (tmp_path / "some").mkdir()
    for path in sorted(path for path in played.iterdir() if path.is_file())[:5]:
        shutil.copy(path, tmp_path / "some")
    publish(tmp_path / "some", store, "mine")
    calls = [
        (["publish", played, "--suite", "mine", "--store", store], store / "mine.parquet"),
        (["publish", played, "--suite", "mine", "--store", store, "--submission"], store / "mine.parquet"),
    ]
    if not leave:
        calls += [
            (sweep_into(disk.folder / "runs", seeds=3), disk.folder / "runs"),
            (["run", "Random", ENV, "--horizon", 3, "--out", disk.folder / "run.parquet"], disk.folder),
            (["leaderboard", played, "--markdown", readme, "--json"], readme),
        ]
    disk.fill(leave)
    before = disk.files()
    for words, place in calls:
        disk.require_full(words, place)
        assert disk.files() == before
    disk.free()
    assert [command(*words)[0] for words, _ in calls] == [0] * len(calls)
    assert len(load_published(store)) == 40
    assert leave or len(list(load_runs(disk.folder / "runs"))) == 3
    assert leave or "Random" in readme.read_text()


@pytest.mark.parametrize("leave", [0, 100_000])
def test_a_report(disk, played, leave):
    target = disk.folder / "report"
    disk.fill(leave)
    words = ["leaderboard", played, "--out", target, "--figures", "png", "--figures", "svg"]
    disk.require_full(words, target)
    disk.free()
    assert command(*words)[0] == 0
    assert (target / "report.html").exists()


@pytest.mark.parametrize("words", [["--json"], ["--csv"], []], ids=["json", "csv", "table"])
def test_what_is_printed_into_a_file(disk, played, tmp_path, words):
    disk.fill()
    with (disk.folder / "printed").open("w") as file:
        disk.require_full(["leaderboard", played, *words, *([] if words else ["--out", tmp_path])], stdout=file)
