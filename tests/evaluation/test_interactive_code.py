"""Agents whose code lies in no file: on standard input, at a prompt, in a notebook's cells, made by ``exec``."""

import json
import subprocess
import sys
import types
from pathlib import Path

import pytest

import cbo_gym

ROOT = Path(cbo_gym.__file__).parents[1]
MINE = """
import cbo_gym

class Mine(cbo_gym.Agent):
    modes = frozenset({cbo_gym.Mode.SOFT})

    def act(self, observation):
        return self.task.action_space.sample()
"""
PLAY = """
import json
run = cbo_gym.evaluate(Mine(), "CBO/Dropwave-v0", 0, horizon=3)
assert run.table.height == 3
print(json.dumps(run.sources))
"""
#: what a notebook does with a cell: Python finds its text under a name that is no file's
CELL = """
import linecache

def cell(name, text):
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), globals())

cell.__module__ = "the_kernel"
"""


def stamps_in(printed):
    """The stamps of ``__main__`` that plays print, one a line."""
    return [json.loads(line)["__main__"] for line in printed.splitlines()]


def test_what_is_typed_at_a_prompt_plays():
    typed = MINE.replace("\n\n    def", "\n    def") + "\n" + PLAY.replace("assert", "\nassert")
    words = [sys.executable, "-i", "-q", "-"]
    done = subprocess.run(words, input=typed, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    assert stamps_in(done.stdout)[0].startswith("unreleased+interactive")


def test_cells_of_a_notebook_are_identified_by_the_source_of_all_of_them(monkeypatch, capsys):
    main = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    first, other = MINE, MINE.replace(".sample()", ".low")
    edited = [f"cell('<ipython-input-{n}-ab>', {string!r})\n{PLAY}" for n, string in enumerate([first, other, first])]
    helped = MINE.replace("self.task.action_space.sample()", "at() + 0 * self.task.action_space.low")
    with_helper = f"cell('/tmp/kernel_1/9.py', {helped!r})"
    helpers = [f"cell('/tmp/kernel_1/{n}.py', 'def at():\\n    return {n}')\n{PLAY}" for n in (0, 1)]
    without_text = "class Plain(Mine):\n    pass\n" + PLAY.replace("Mine()", "Plain()")
    exec("\n".join([CELL, *edited, with_helper, *helpers, without_text]), vars(main))
    one, changed, again, low, high, partly = stamps_in(capsys.readouterr().out)
    kind, _, digits = one.partition("+interactive.")
    assert (kind, len(digits)) == ("unreleased", 12)
    assert changed.startswith("unreleased+interactive.")
    assert changed != one == again
    assert low != high, "helpers in other cells count"
    assert partly == "unreleased+interactive", "if some text is unknown, there is no fingerprint"


@pytest.mark.parametrize("name", ["made_up", "in_memory", "<string>", None], ids=str)
def test_a_class_that_exec_made_plays(name, monkeypatch):
    namespace = {} if name is None else {"__name__": name}
    if name == "in_memory":
        module = types.ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        namespace = vars(module)
    exec(MINE, namespace)
    run = cbo_gym.evaluate(namespace["Mine"](), "CBO/Dropwave-v0", 0, horizon=3)
    others = {key: stamp for key, stamp in run.sources.items() if key != "CBO/Dropwave-v0"}
    assert others == {name or "<exec>": "unreleased+interactive"}
