"""YAML files that would take much time or memory; each is read in a separate process, whose memory is measured."""

import json

import pytest

from tests.support.yaml import BOMBS, nested
from tests.trials.helpers import python, say

pytestmark = pytest.mark.slow

GREENHOUSE = "name: G\nreward: Y\nvariables: {{Y: {equation}}}\nactions: {{x: [0, 1]}}\n{more}"
MANY = {i: f"V{i}" for i in range(40)}


def problem(equation, more=""):
    return GREENHOUSE.format(equation=json.dumps(equation), more=more)


PROBLEMS = {
    "tower of powers": problem("9**9**9**9 * x"),
    "tower of powers of x": problem("x**9**9**9**9"),
    "a long number in an equation": problem("x * " + "9" * 4500),
    "nested brackets": problem("(" * 2000 + "x" + ")" * 2000),
    "nested functions": problem("abs(" * 240 + "x" + ")" * 240),
    "a long sum": problem("+".join(["x"] * 2400)),
    "many minus signs": problem("-" * 4000 + "x"),
    "a hundred texts": problem("'x'" * 100),
    "repeated text": problem("'x' * 10**12"),
    "shift": problem("1 << 10**12"),
    "40 manipulable variables": "name: G\nreward: Y\nvariables:\n"
    + "".join(f"  {name}: {{equation: u, noise: 1}}\n" for name in MANY.values())
    + f"  Y: {'+'.join(MANY.values())}\nmanipulable: {{{', '.join(f'{name}: [0, 1]' for name in MANY.values())}}}\n",
    "40 variables in a chain": "name: G\nreward: Y\nvariables:\n  V0: {equation: u, noise: 1}\n"
    + "".join(f"  V{i}: {{equation: V{i - 1} + u, noise: 1}}\n" for i in range(1, 40))
    + f"  Y: {'+'.join(MANY.values())}\nmanipulable: {{{', '.join(f'{name}: [0, 1]' for name in MANY.values())}}}\n",
    "200 causes": "name: G\nreward: Y\nvariables:\n"
    + "".join(f"  V{i}: {{equation: '{'+'.join(f'V{j}' for j in range(i)) or 'u'}'{', noise: 1' if not i else ''}}}\n"
              for i in range(120))
    + "  Y: V119\nactions: {}\nmanipulable: {V0: [0, 1]}\n",
    "30,000 variables": "name: G\nreward: V0\nvariables:\n" + "".join(f"  V{i}: '1'\n" for i in range(14_000)),
    "scopes": "name: G\nreward: Y\nvariables: {C: {equation: u, noise: 1}, X: C, Y: X}\nmanipulable: {X: [0, 1]}\n"
    "contexts: [C]\nscopes: [" + "{X: [C]}, " * 5000 + "]",
    "a noise of many arguments": problem("x + u", "")
    .replace("Y: ", "Y: {noise: {Uniform: [" + "0," * 9000 + "]}, equation: ")
    .replace("}\nactions", "}}\nactions"),
    "aliases of aliases of texts": nested("a{i}: &a{i} [{list}]\n").replace("{k: 1}", "x" * 9000),
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


def test_bombs(tmp_path):
    bombs = {**{name: string for name, (string, _) in BOMBS.items()}, **PROBLEMS}
    rows = []
    for name, string in bombs.items():
        path = tmp_path / "bomb.yaml"
        path.write_text(string)
        done = python("-c", READ, path, check=False, timeout=60)
        seconds, mebibytes, said = json.loads(done.stdout) if done.returncode == 0 else (0, 0, done.stderr[-300:])
        rows.append((name, len(string), seconds, mebibytes, said.replace(str(path), "FILE"), done.returncode))
    say("YAML bombs", f"{len(rows)} tried", f"{sum('cannot load' in row[4] for row in rows)} refused",
        f"{sum(row[4] == 'loaded' for row in rows)} loaded", f"at most {max(row[3] for row in rows):.0f} MB more",
        f"at most {max(row[2] for row in rows):.2f} s")  # fmt: skip
    for name, size, seconds, mebibytes, said, _ in rows:
        print(f"  {name:32} {size:8} bytes {seconds:6.2f} s {mebibytes:6.1f} MB  {said[:90]!r}")
    for name, _, seconds, mebibytes, said, status in rows:
        assert status == 0, (name, said)
        assert (seconds < 5, mebibytes < 300) == (True, True), name
        assert "\n" not in said, name
        assert len(said) < 1000, name
