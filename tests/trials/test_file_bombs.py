"""Small files that would fill the memory."""

import json
import time

import polars as pl
import psutil
import pytest

from cbo_gym import evaluate
from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation import publish
from cbo_gym.evaluation.runs.results import METADATA_KEY, load_run, name_of, save_run, seal_table
from cbo_gym.evaluation.store.codec import read_store_file
from cbo_gym.referee.submission import check_submission

CARD = "agent: tests.support.agents:Centre\nsuite: tiny\npaper: none\ncode: here\ncontact: me\nhardware: 2 cores\n"
pytestmark = pytest.mark.slow

MEBIBYTE = 2**20


def bombs():
    values = pl.Series([[0.0] * 100_000_000], dtype=pl.List(pl.Float64))
    yield "a list of equal values", pl.DataFrame({"round": [1], "reward": values})
    yield "equal rows", pl.DataFrame({"round": pl.repeat(7, 200_000_000, eager=True)})
    yield "equal texts", pl.DataFrame({"agent": pl.repeat("x" * 1000, 2_000_000, eager=True)})


def require_refused(read, path, what, seconds):
    before, start = psutil.Process().memory_info().rss, time.monotonic()
    with pytest.raises(ArgumentError) as refused:
        read(path)
    passed, grown = time.monotonic() - start, psutil.Process().memory_info().rss - before
    print(f"{what}: {path.stat().st_size} bytes, {passed:.2f} s, {grown / MEBIBYTE:.0f} MiB: {refused.value}"[:300])
    assert passed < seconds
    assert grown < 200 * MEBIBYTE


@pytest.mark.parametrize("read", [load_run, read_store_file])
def test_tables_of_others_are_refused_by_their_columns(read, tmp_path):
    for what, frame in bombs():
        path = tmp_path / "bomb.parquet"
        path.write_bytes(seal_table(frame, {"schema": 2, "suite": "x", "runs": {}}, compression="zstd"))
        del frame
        require_refused(read, path, what, seconds=1.0)


LARGE = {
    "long curves": lambda frame: frame.with_columns(
        pl.Series("reward", [pl.repeat(0.0, 500_000_000, dtype=pl.Float32, eager=True)])),
    "many runs": lambda frame: pl.concat([frame[:1]] * 3).select(pl.all().repeat_by(3_000_000).explode()),
}  # fmt: skip


@pytest.mark.parametrize("what", LARGE)
def test_submissions_are_read_within_limits(what, tmp_path):
    run = evaluate("Random", "CBO/Dropwave-v0", 0, horizon=5)
    save_run(tmp_path / "mine" / name_of(run), run)
    publish(tmp_path / "mine", tmp_path)
    path = tmp_path / "mine.parquet"
    about = json.loads(pl.read_parquet_metadata(path)[METADATA_KEY])
    del about["checksum"]
    path.write_bytes(seal_table(LARGE[what](pl.read_parquet(path)), about, compression="zstd"))
    (tmp_path / "card.yaml").write_text(CARD)
    require_refused(lambda path: check_submission(path, tmp_path / "card.yaml"), path, what, seconds=300)
