import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import pytest
import yaml

import cbo_gym
from cbo_gym.envs import registration, registry
from cbo_gym.envs.registration import COPY, custom_id, registry_path
from cbo_gym.envs.registry import (
    RecordedOptimum,
    RegistryError,
    copy_of,
    entries,
    load_registry,
    read_registry,
    write_optimum,
)
from cbo_gym.task import Mode

GOOD = {
    "id": "CBO/Mine-v0",
    "problem": "cbo_gym.problems.systems.function_networks:dropwave",
    "mode": "soft",
    "horizon": 10,
    "initial_data": {"observational": 0, "random": 3},
    "paper": "Somebody (2020)",
    "section": "sec. 1",
}


def written(path, *items):
    path.write_text(yaml.safe_dump(list(items)))
    return path


def test_every_entry_is_registered_with_both_entry_points():
    assert len(entries()) >= 13
    for entry in entries():
        spec = gym.spec(entry.id)
        assert spec.max_episode_steps == entry.horizon
        assert spec.vector_entry_point is not None
        assert entry.optimum is not None
        assert entry.id in entry.optimum.command


def test_the_copy_without_yaml_is_up_to_date():
    assert COPY.read_text(encoding="utf-8") == copy_of(registry_path()), "run 'make registry'"
    assert read_registry() == read_registry(registry_path())
    assert set(map(custom_id, Mode)) <= set(gym.registry)


def test_an_edited_file_is_read_without_its_copy(tmp_path, monkeypatch):
    path = written(tmp_path / "r.yaml", GOOD)
    monkeypatch.setattr(registration, "registry_path", lambda: path)
    monkeypatch.setattr(registry, "registry_path", lambda: path)
    assert registration.read_copy() is None
    assert [entry.id for entry in load_registry()] == ["CBO/Mine-v0"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"id": "Mine-v0"}, "field id"),
        ({"mode": "warm"}, "field mode"),
        ({"horizon": 0}, "field horizon"),
        ({"problem": "nowhere"}, "field problem"),
        ({"initial_data": {"observational": -1, "random": 2}}, r"field initial_data\.observational"),
        ({"colour": "blue"}, "field colour"),
        ({"optimum": {"value": "high"}}, r"field optimum\.value"),
    ],
)
def test_a_broken_entry_is_named_with_its_field(tmp_path, change, field):
    path = written(tmp_path / "r.yaml", GOOD, {**GOOD, "id": "CBO/Other-v0", **change})
    with pytest.raises(RegistryError, match=rf"entry 2 \({change.get('id', 'CBO/Other-v0')}\): .*{field}"):
        load_registry(path)


def test_entries_that_are_right_are_read_beside_those_that_are_wrong(tmp_path):
    wrong = {k: v for k, v in GOOD.items() if k != "horizon"} | {"id": "CBO/Wrong-v0", "horizn": 5}
    path = written(tmp_path / "r.yaml", wrong, GOOD, "just text", GOOD, {**GOOD, "id": "CBO/Other-v0"})
    found = read_registry(path)
    assert [entry.id for entry in found.entries] == ["CBO/Mine-v0", "CBO/Other-v0"]
    assert (found.entries[0].kwargs, found.entries[0].optimum) == ({}, None)
    assert list(found.broken) == ["CBO/Wrong-v0", "entry 3", "CBO/Mine-v0"]
    assert all(isinstance(error, RegistryError) for error in found.broken.values())
    first, string, twice = map(str, found.broken.values())
    assert "entry 1 (CBO/Wrong-v0): " in first
    assert "field horizon: Field required" in first
    assert re.search(r"field horizn: there is no such field among .*; did you mean 'horizon'\?", first)
    assert "entry 3 (not a mapping)" in string
    assert "the id CBO/Mine-v0 is given twice" in twice
    with pytest.raises(RegistryError, match=r"CBO/Wrong-v0"):
        load_registry(path)


TRY_THE_COPY = """
import json, sys, warnings
sys.path.insert(0, {site!r})
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import cbo_gym
import gymnasium as gym
from cbo_gym.agent_registry.labels import Spec
from cbo_gym.envs.making import make_env
from cbo_gym.envs.registry import entries

assert cbo_gym.__file__.startswith({site!r}), cbo_gym.__file__
WRONG = "CBO/Alpine2-v0"

def tried(make, *arguments, **keywords):
    try:
        return make(*arguments, **keywords).spec.id
    except Exception as error:
        return f"{{type(error).__name__}}: {{error}}"

print(json.dumps({{
    "warnings": [str(one.message) for one in caught],
    "entries": [entry.id for entry in entries()],
    "right": [tried(gym.make, "CBO/Mine-v0"), tried(gym.make, "CBO/Custom-v0", problem={problem!r})],
    "wrong": [tried(gym.make, WRONG), tried(gym.make, WRONG, max_interventions=2),
              tried(gym.make_vec, WRONG, num_envs=2, vectorization_mode="sync")],
    "evaluated": tried(make_env, Spec(WRONG)),
}}))
"""


def test_a_broken_entry_of_the_package_breaks_its_own_environment_alone(tmp_path):
    package = tmp_path / "site" / "cbo_gym"
    shutil.copytree(Path(cbo_gym.__file__).parent, package)
    broken = {key: value for key, value in GOOD.items() if key != "horizon"} | {"id": "CBO/Alpine2-v0", "horizn": 5}
    written(package / "envs" / "envs_registry.yaml", GOOD, broken, GOOD, {"id": "not one", "mode": "warm"})
    done = subprocess.run(
        [sys.executable, "-c", TRY_THE_COPY.format(site=str(tmp_path / "site"), problem=GOOD["problem"])],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    parts = ("(CBO/Alpine2-v0): field horizon: Field required", "field horizn: there is no such field among ")
    expected = [parts, ("the id CBO/Mine-v0 is given twice",), ("(not one)",)]
    for warning, told in zip(found["warnings"], expected, strict=True):
        assert warning.startswith("left out of the registry: ")
        assert all(part in warning for part in told)
    assert found["entries"] == ["CBO/Mine-v0"]
    assert found["right"] == ["CBO/Mine-v0", "CBO/Custom-v0"]
    for error in found["wrong"]:
        assert error.startswith("RegistryError: ")
        assert all(part in error for part in parts)
    assert found["evaluated"].startswith("ArgumentError: cannot make the environment CBO/Alpine2-v0: ")


@pytest.mark.parametrize(
    ("string", "message"),
    [
        ("- id: [unclosed", "(?s)cannot read .*line 1"),
        ("id: CBO/Mine-v0", "must hold a list"),
        ("- just text", r"entry 1 \(not a mapping\)"),
        ("- !!python/object/apply:os.getcwd []", "cannot read"),
    ],
)
def test_broken_files(tmp_path, string, message):
    path = tmp_path / "r.yaml"
    with pytest.raises(RegistryError, match="cannot read"):
        load_registry(path)
    path.write_text(string)
    with pytest.raises(RegistryError, match=message):
        load_registry(path)


def test_recording_an_optimum_changes_nothing_else(tmp_path):
    path = tmp_path / "r.yaml"
    path.write_text(registry_path().read_text())
    optimum = RecordedOptimum(
        value=0.5, action=[0.25, 1.0], standard_error=0.0, random_value=0.1, random_standard_error=0.01, command="c"
    )
    write_optimum(path, "CBO/Dropwave-Noisy-v0", optimum)
    before = {entry.id: entry for entry in entries()}
    after = {entry.id: entry for entry in load_registry(path)}
    assert after.pop("CBO/Dropwave-Noisy-v0").optimum == optimum
    before.pop("CBO/Dropwave-Noisy-v0")
    assert after == before
    once = path.read_text()
    write_optimum(path, "CBO/Dropwave-Noisy-v0", optimum)
    assert path.read_text() == once
    with pytest.raises(RegistryError, match="no entry"):
        write_optimum(path, "CBO/None-v0", optimum)
