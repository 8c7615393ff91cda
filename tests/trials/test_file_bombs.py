"""Small files that would fill the memory or take long; YAML is read by a separate process."""

import json
import time

import polars as pl
import psutil
import pytest

from cbo_gym import evaluate
from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation import publish
from cbo_gym.evaluation.runs.results import METADATA_KEY, encode_table, load_run, name_of, save_run
from cbo_gym.evaluation.store.codec import read_store_file
from cbo_gym.referee.submission import check_submission
from tests.support.yaml import BOMBS, nested_lines
from tests.trials.helpers import python

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
        path.write_bytes(encode_table(frame, {"schema": 2, "suite": "x", "runs": {}}, compression="zstd"))
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
    path.write_bytes(encode_table(LARGE[what](pl.read_parquet(path)), about, compression="zstd"))
    (tmp_path / "card.yaml").write_text(CARD)
    require_refused(lambda path: check_submission(path, tmp_path / "card.yaml"), path, what, seconds=300)


GREENHOUSE = "name: G\nreward: Y\nvariables: {{Y: {equation}}}\nactions: {{x: [0, 1]}}\n{more}"
MANY = {i: f"V{i}" for i in range(40)}


def problem(equation, more=""):
    return GREENHOUSE.format(equation=json.dumps(equation), more=more)


PROBLEMS = {
    "tower of powers": problem("9**9**9**9 * x"),
    "a long number in an equation": problem("x * " + "9" * 4500),
    "nested brackets": problem("(" * 2000 + "x" + ")" * 2000),
    "a long sum": problem("+".join(["x"] * 2400)),
    "shift": problem("1 << 10**12"),
    "40 variables in a chain": "name: G\nreward: Y\nvariables:\n  V0: {equation: u, noise: 1}\n"
    + "".join(f"  V{i}: {{equation: V{i - 1} + u, noise: 1}}\n" for i in range(1, 40))
    + f"  Y: {'+'.join(MANY.values())}\nmanipulable: {{{', '.join(f'{name}: [0, 1]' for name in MANY.values())}}}\n",
    "30,000 variables": "name: G\nreward: V0\nvariables:\n" + "".join(f"  V{i}: '1'\n" for i in range(14_000)),
    "scopes": "name: G\nreward: Y\nvariables: {C: {equation: u, noise: 1}, X: C, Y: X}\nmanipulable: {X: [0, 1]}\n"
    "contexts: [C]\nscopes: [" + "{X: [C]}, " * 5000 + "]",
    "a noise of many arguments": problem("x + u", "")
    .replace("Y: ", "Y: {noise: {Uniform: [" + "0," * 9000 + "]}, equation: ")
    .replace("}\nactions", "}}\nactions"),
    "aliases of aliases of texts": nested_lines("a{i}: &a{i} [{list}]\n").replace("{k: 1}", "x" * 9000),
}  # fmt: skip
READ = """
import json, sys, time
from pathlib import Path
from cbo_gym import load_problem
def peak():
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024
Path("/proc/self/clear_refs").write_text("5")  # the peak is what there is now
before, start = peak(), time.perf_counter()
try:
    load_problem(sys.argv[1])
    said = "loaded"
except ValueError as error:
    said = str(error)
seconds = time.perf_counter() - start
print(json.dumps([seconds, peak() - before, said]))
"""


def test_yaml_takes_little_time_and_memory(tmp_path):
    bombs = {**{name: string for name, (string, _) in BOMBS.items()}, **PROBLEMS}
    for name, string in bombs.items():
        path = tmp_path / "bomb.yaml"
        path.write_text(string)
        done = python("-c", READ, path, check=False, timeout=60)
        seconds, mebibytes, said = json.loads(done.stdout) if done.returncode == 0 else (0, 0, done.stderr[-300:])
        assert done.returncode == 0, (name, said)
        assert (seconds < 5, mebibytes < 300) == (True, True), name
        assert "\n" not in said, name
        assert len(said) < 1000, name
