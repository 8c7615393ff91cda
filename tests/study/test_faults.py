"""Processes that are killed, a full disk, files that may not be written, for real: nothing is lost."""

import os
import subprocess
import sys
from contextlib import contextmanager, suppress

import pytest

from cbo_gym.errors import OperationError
from cbo_gym.study import load_study
from tests.support.studies import fermenter, play
from tests.support.study_kills import check, states
from tests.support.study_kills import play as kill

pytestmark = pytest.mark.slow


@contextmanager
def mounted(folder, *options):
    """A mount that needs the rights of root, else the test is left out."""
    folder.mkdir()
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        pytest.skip("only root may mount a file system")
    done = subprocess.run(["mount", *options, folder], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def shell(*words):
    """The last line that a command says of a mistake; it is one line, without a traceback."""
    command = [sys.executable, "-W", "ignore", "-m", "cbo_gym", "study", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("Error:")
    return done.stderr


@pytest.mark.parametrize("room", [0, 64 * 1024])
def test_a_full_disk_loses_nothing_and_refuses_what_it_cannot_hold(tmp_path, room):
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=512k", "tmpfs") as disk:
        study = fermenter(disk / "f.db", agent="Random")
        play(study, 3)
        filler = disk / "filler"
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        os.truncate(filler, filler.stat().st_size - room)
        recorded = []
        with pytest.raises(OperationError, match=r"f\.db: .* nothing was changed by this call; .*(is full|free space)"):
            recorded.extend(play(study).name for _ in range(1000))
        assert bool(recorded) == (room > 0)
        said = shell("tell", disk / "f.db", 1, "titre=1")
        assert "is full" in said or "free space" in said or "trial 1 is measured" in said
        filler.unlink()
        again = load_study(storage=disk / "f.db")
        assert sum(entry.status == "measured" for entry in again.trials) == 3 + len(recorded)
        assert states(again) == states(study)
        play(again, 2)


def test_a_folder_on_a_disk_that_may_only_be_read(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    before = states(fermenter_with_trials(source / "f.db"))
    data = (source / "f.db").read_bytes()
    with mounted(tmp_path / "disk", "--bind", source) as disk:
        subprocess.run(["mount", "-o", "remount,ro,bind", disk], check=True)
        for call in ("ask", "show"):
            said = shell(call, disk / "f.db")
            assert str(disk / "f.db") in said
            assert "read-only" in said or "must be allowed to write files next to the database" in said
    assert (source / "f.db").read_bytes() == data
    assert states(load_study(storage=source / "f.db")) == before


def fermenter_with_trials(path):
    play(fermenter(path, agent="Random"), 2)
    return play(load_study(storage=path), 1)


def test_a_small_limit_of_the_size_of_files(tmp_path):
    """What a full disk or a quota is where none can be mounted."""
    resource = pytest.importorskip("resource", reason="sizes of files can be limited on POSIX systems")
    study = fermenter_with_trials(tmp_path / "f.db")
    before, limits = states(study), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(OperationError, match=r"f\.db: .*nothing was changed by this call; .* (full|room)"):
            play(study, 50)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert states(load_study(storage=tmp_path / "f.db"))[:3] == before
    play(study, 1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills processes")
@pytest.mark.parametrize(("agent", "kills", "pause"), [("Random", 40, 0.3), ("GP-UCB", 10, 4.0)])
def test_kills_lose_no_recorded_outcome_and_use_no_number_twice(tmp_path, agent, kills, pause):
    path = tmp_path / "f.db"
    fermenter(path, agent=agent)
    _, recorded = check(path, tmp_path, kill(path, tmp_path, kills, seed=100, pause=pause))
    # There was work to be disturbed.
    assert recorded > kills / 2
