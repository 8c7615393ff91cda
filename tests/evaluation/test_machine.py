"""How many processes are one a core."""

import pytest

from cbo_gym import sweep
from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.runs.machine import process_count


def test_numbers_below_0_count_down_from_all_cores(monkeypatch):
    monkeypatch.setattr("joblib.cpu_count", lambda: 8)
    assert [process_count(count) for count in (20, 1, -1, -2, -8, -9)] == [20, 1, 8, 7, 1, 1]


@pytest.mark.parametrize("count", [0, 1.5, True, "2"])
def test_what_is_no_number_of_processes_is_refused(tmp_path, count):
    with pytest.raises(ArgumentError, match="give a number of processes, or -1 for one per core; given"):
        sweep(["Random"], ["CBO/Dropwave-v0"], [0], tmp_path, horizon=1, n_jobs=count)
    assert not list(tmp_path.iterdir())
