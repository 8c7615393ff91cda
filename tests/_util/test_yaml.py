"""Files that would take much time or memory are refused, in one line that says where and why."""

from __future__ import annotations

import os
import tracemalloc
from time import perf_counter

import pytest

from cbo_gym import load_problem
from cbo_gym._util.yaml import read_yaml
from cbo_gym.envs.registry import RegistryError, load_registry
from cbo_gym.errors import ArgumentError


def nested(line, count=8):
    """``count`` lines, each of which holds the one before nine times."""
    return "a0: &a0 {k: 1}\n" + "".join(line.format(i=i, list=",".join([f"*a{i - 1}"] * 9)) for i in range(1, count))


BOMBS = {
    "aliases": (nested("a{i}: &a{i} [{list}]\n"), "line 6: with its aliases written out .* more than 30000 parts"),
    "merge keys": (nested("a{i}: &a{i} {{<<: [{list}]}}\n"), "line 6: with its aliases .* more than 30000 parts"),
    "an alias of itself": ("a: &a [*a]", "line 1: an alias of a part that contains it"),
    "a chain of aliases": (
        "- &a0 [x]\n" + "".join(f"- &a{i} [*a{i - 1}]\n" for i in range(1, 5000)),
        "line 50: nested more than 50 deep",
    ),
    "brackets": ("[" * 400_000, "line 1: nested more than 50 deep"),
    "braces": ("{a: " * 50_000, "line 1: nested more than 50 deep"),
    "dashes": ("- " * 50_000 + "a", "line 1: nested more than 50 deep"),
    "a large file": ("#" + "x" * 5_000_000, "larger than 500000 bytes"),
    "many parts": ("a: [" + "[]," * 100_000 + "]", "line 1: the file holds more than 30000 parts"),
    "a long text": ("\na: " + "x" * 300_000, "line 2: a string of 300000 characters"),
    "a long number": ("a: " + "9" * 5000, "line 1: a number of 5000 digits; at most 100"),
    "a number in base 16": ("a: 0x" + "f" * 9000, "line 1: a number of 9002 digits"),
    "a key twice": ("a: 1\nb: {c: 1,\n c: 2}", "line 3: the key 'c' comes twice, first in line 2"),
    "a list as a key": ("[a]: 1", "line 1: a key that is a list"),
    "code": ("a: !!python/object/apply:os.system [ls]", "line 1: the tag .* not allowed"),
    "a tag": ("a: !!int ''", "line 1: the tag .* not allowed"),
    "no text": ("a: \0", "control characters are not allowed"),
    "two documents": ("a: 1\n---\nb: 2", "line 2: but found another document"),
    "an open list": ("a: [1\nb: 2", "line 1: while parsing a flow sequence; line 2: did not find"),
}


@pytest.fixture(params=BOMBS)
def bomb(request, tmp_path):
    text, message = BOMBS[request.param]
    path = tmp_path / "bomb.yaml"
    path.write_text(text)
    return path, message


def test_it_is_refused_in_one_line_soon_and_with_little_memory(bomb):
    path, message = bomb
    tracemalloc.start()
    start = perf_counter()
    with pytest.raises(ArgumentError, match=message) as raised:
        read_yaml(path)
    seconds, (_, peak) = perf_counter() - start, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seconds < 5  # tens of milliseconds, on a machine that does nothing else
    assert peak < 20e6
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 300


def test_registries_and_problems_are_read_so(bomb):
    path, message = bomb
    with pytest.raises(RegistryError, match=rf"cannot read .*bomb\.yaml: .*{message}"):
        load_registry(path)
    with pytest.raises(ArgumentError, match=rf"cannot load the problem .*bomb\.yaml: .*{message}"):
        load_problem(path)


def test_aliases_and_merge_keys_that_are_few_are_followed(tmp_path):
    path = tmp_path / "good.yaml"
    path.write_text("a: &a {x: 1, y: 2}\nb: *a\nc: {<<: *a, y: 3}\n")
    assert read_yaml(path) == {"a": {"x": 1, "y": 2}, "b": {"x": 1, "y": 2}, "c": {"x": 1, "y": 3}}


def test_only_what_yaml_1_2_takes_for_numbers_and_truth_values_is_one(tmp_path):
    path = tmp_path / "words.yaml"
    words = ["NO", "on", "Yes", "off", "y", "12:30", "1_000", "2020-13-45", "0b1", "=", "a<<b", "1e", "true"]
    path.write_text(f"[{', '.join(words[:-1])}, 'true']")
    assert read_yaml(path) == words
    path.write_text("[true, False, null, ~, 010, -7, 0o17, 0xfF, 1e-3, .5, -1.E2, +.inf, 3.]")
    assert read_yaml(path) == [True, False, None, None, 10, -7, 15, 255, 1e-3, 0.5, -100.0, float("inf"), 3.0]


def test_a_file_that_is_empty_or_none(tmp_path):
    (tmp_path / "empty.yaml").touch()
    assert read_yaml(tmp_path / "empty.yaml") is None
    with pytest.raises(ArgumentError, match="No such file"):
        read_yaml(tmp_path / "none.yaml")
    os.mkfifo(tmp_path / "endless.yaml")
    with pytest.raises(ArgumentError, match="a device or a pipe, which might never end; give a file"):
        read_yaml(tmp_path / "endless.yaml")
