"""Files that would take much time or memory are refused, in one line that says where and why."""

import os
import tracemalloc
from time import perf_counter

import pytest

from cbo_gym import load_problem
from cbo_gym._util.yaml import read_yaml
from cbo_gym.envs.registry import RegistryError, load_registry
from cbo_gym.errors import ArgumentError
from tests.support.yaml import BOMBS


@pytest.fixture(params=BOMBS)
def bomb(request, tmp_path):
    string, message = BOMBS[request.param]
    path = tmp_path / "bomb.yaml"
    path.write_text(string)
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
