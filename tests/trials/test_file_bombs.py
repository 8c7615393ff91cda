"""Small files that would fill the memory: refused by what their pages say, before anything is decoded."""

import time

import polars as pl
import psutil
import pytest

from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.runs.results import load_run, sealed
from cbo_gym.evaluation.store.published import read_part

pytestmark = pytest.mark.slow

MEBIBYTE = 2**20


def bombs():
    values = pl.Series([[0.0] * 100_000_000], dtype=pl.List(pl.Float64))
    yield "a list of equal values", pl.DataFrame({"round": [1], "reward": values})
    yield "equal rows", pl.DataFrame({"round": pl.repeat(7, 200_000_000, eager=True)})
    yield "equal texts", pl.DataFrame({"agent": pl.repeat("x" * 1000, 2_000_000, eager=True)})


@pytest.mark.parametrize("read", [load_run, read_part])
def test_files_that_grow_are_refused_at_once(read, tmp_path):
    for what, frame in bombs():
        path = tmp_path / "bomb.parquet"
        path.write_bytes(sealed(frame, {"schema": 2, "suite": "x", "runs": {}}, compression="zstd"))
        size = frame.estimated_size()
        del frame
        before, start = psutil.Process().memory_info().rss, time.monotonic()
        with pytest.raises(ArgumentError):
            read(path)
        seconds, grown = time.monotonic() - start, psutil.Process().memory_info().rss - before
        written = f"{path.stat().st_size} bytes for {size / MEBIBYTE:.0f} MiB"
        print(f"{what}: {written}, {seconds:.2f} s, {grown / MEBIBYTE:.0f} MiB")
        assert seconds < 1.0
        assert grown < 200 * MEBIBYTE
