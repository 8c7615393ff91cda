"""How many processes are one a core: cores that this process may use, of those of a container its share."""

import pytest

from cbo_gym import sweep
from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.runs import machine
from cbo_gym.evaluation.runs.machine import process_count, usable_cores


@pytest.fixture
def cores(monkeypatch):
    """A machine of 8 cores."""
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda _: set(range(8)), raising=False)


@pytest.mark.parametrize(
    ("files", "usable"),
    [
        ({}, 8),
        ({"cpu.max": "max 100000\n"}, 8),
        ({"cpu.max": "250000 100000\n"}, 3),
        ({"cpu.max": "1600000 100000\n"}, 8),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 8),
        ({"cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 2),
        ({"cpu/cpu.cfs_quota_us": "5000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),
    ],
    ids=["none", "no limit", "share", "more than there are", "old, no limit", "old, share", "less than one"],
)
def test_a_container_has_its_share(cores, tmp_path, monkeypatch, files, usable):
    (tmp_path / "cpu").mkdir()
    for name, string in files.items():
        (tmp_path / name).write_text(string)
    monkeypatch.setattr(machine, "CGROUPS", tmp_path)
    assert usable_cores() == usable
    assert process_count(-1) == usable


def test_numbers_below_0_count_down_from_all_cores(cores, tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "CGROUPS", tmp_path)
    assert [process_count(count) for count in (20, 1, -1, -2, -8, -9)] == [20, 1, 8, 7, 1, 1]


@pytest.mark.parametrize("count", [0, 1.5, True, "2"])
def test_what_is_no_number_of_processes_is_refused(tmp_path, count):
    with pytest.raises(ArgumentError, match="give a number of processes, or -1 for one per core; given"):
        sweep(["Random"], ["CBO/Dropwave-v0"], [0], tmp_path, horizon=1, n_jobs=count)
    assert not list(tmp_path.iterdir())
