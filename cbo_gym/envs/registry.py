"""envs_registry.yaml: the list of environments, validated and registered with Gymnasium."""

from __future__ import annotations

import json
import re
import warnings
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NoReturn

import gymnasium as gym
import yaml
from pydantic import Field, NonNegativeInt, PositiveInt, ValidationError

from cbo_gym._util.files import write_text
from cbo_gym._util.validation import StrictModel, field_errors
from cbo_gym._util.yaml import read_yaml
from cbo_gym.envs.registration import COPY, CUSTOM_ROUNDS, custom_id, hash_of, read_copy, register, registry_path
from cbo_gym.errors import ArgumentError
from cbo_gym.problems.recorded import RecordedOptimum
from cbo_gym.task import Mode

ID_PATTERN = r"^CBO/[A-Za-z0-9]+(-[A-Za-z0-9]+)*-v\d+$"


class RegistryError(ArgumentError):
    """The registry file is broken; the message names the entry and the field."""


def is_custom(env_id: str) -> bool:
    """Return whether an id is that of a custom problem."""
    return env_id in map(custom_id, Mode)


class InitialData(StrictModel):
    """Sizes of the data that every agent gets before it acts.

    ``observational`` rounds without intervention, then ``random`` interventions: in soft mode their number (``2q+1``
    for q action coordinates), in hard mode the number for each non-empty target set.
    """

    observational: NonNegativeInt
    random: NonNegativeInt | Literal["2q+1"]


class EnvEntry(StrictModel):
    """An environment: its keywords for ``gym.make``, and the source of the benchmark.

    ``problem`` is the import path of the problem's builder, and ``kwargs`` are arguments of the builder or the mode.
    ``paper`` defines the benchmark in ``section``. ``revision`` is raised when the behaviour under the same id changes:
    its runs are then played again.
    """

    id: Annotated[str, Field(pattern=ID_PATTERN)]
    problem: Annotated[str, Field(pattern=r"^[\w.]+:\w+$")]
    mode: Mode
    revision: PositiveInt = 1
    kwargs: dict[str, Any] = {}
    horizon: PositiveInt
    initial_data: InitialData
    paper: str
    section: str
    tags: list[str] = []
    optimum: RecordedOptimum | None = None

    @property
    def make_kwargs(self) -> dict[str, Any]:
        """Keyword arguments of ``gym.make``."""
        return {"problem": self.problem, "mode": self.mode.value, **self.kwargs}


class Registry(NamedTuple):
    """The contents of a registry file: the valid entries, and the errors of the others by id or number."""

    entries: tuple[EnvEntry, ...]
    broken: dict[str, RegistryError]


def load_registry(path: Path | None = None) -> tuple[EnvEntry, ...]:
    """Return the entries of a registry file, None for the package's own; raise RegistryError if one is invalid."""
    registry = read_registry(path)
    for error in registry.broken.values():
        raise error
    return registry.entries


def read_registry(path: Path | None = None) -> Registry:
    """Read a registry file, with invalid entries apart; raise RegistryError if it is missing or not a YAML list."""
    copy = read_copy() if path is None else None
    path = path or registry_path()
    try:
        items = copy["environments"] if copy else read_yaml(path)
    except ArgumentError as error:
        raise RegistryError(f"cannot read {path}: {error}") from error
    if not isinstance(items, list):
        raise RegistryError(f"{path} must hold a list of environments; it holds {type(items).__name__}")
    valid: dict[str, EnvEntry] = {}
    broken: dict[str, RegistryError] = {}
    for index, item in enumerate(items, start=1):
        env_id = item.get("id") if isinstance(item, dict) else None
        name = env_id if isinstance(env_id, str) else None
        try:
            entry = EnvEntry.model_validate(item)
        except ValidationError as error:
            label = name or ("without id" if isinstance(item, dict) else "not a mapping")
            registry_error = RegistryError(f"{path}, entry {index} ({label}): {field_errors(error, EnvEntry)}")
            registry_error.__cause__ = error
            broken[name or f"entry {index}"] = registry_error
            continue
        if entry.id in valid:
            broken[entry.id] = RegistryError(f"{path}: the id {entry.id} is given twice")
        else:
            valid[entry.id] = entry
    return Registry(tuple(valid.values()), broken)


@cache
def _package_registry() -> Registry:
    return read_registry()


def entries() -> tuple[EnvEntry, ...]:
    """Return the package's own registry, read once."""
    return _package_registry().entries


def find_entry(env_id: str) -> EnvEntry | None:
    """Return the registry's entry for an id, or None."""
    return next((entry for entry in entries() if entry.id == env_id), None)


def register_all() -> None:
    """Register every environment from the YAML file, see :func:`cbo_gym.envs.registration.register_copy`.

    An invalid entry is named in a warning, and again by an error when its environment is created; the others are
    registered. If the whole file cannot be read, a warning says so.
    """
    for mode in Mode:
        register(custom_id(mode), {"mode": mode.value, "problem": None}, CUSTOM_ROUNDS)
    try:
        registry = _package_registry()
    except RegistryError as unreadable:
        warnings.warn(f"no environments are registered: {unreadable}", stacklevel=2)
        return
    for entry in registry.entries:
        register(entry.id, entry.make_kwargs, entry.horizon, entry.tags)
    for name, error in registry.broken.items():
        warnings.warn(f"left out of the registry: {error}", stacklevel=2)
        if re.match(ID_PATTERN, name) and name not in gym.registry:
            refuse = partial(_raise, error)
            gym.register(name, entry_point=refuse, vector_entry_point=refuse)


def _raise(error: RegistryError, **keywords: object) -> NoReturn:
    raise error


def copy_of(path: Path) -> str:
    """Return the JSON copy of a registry file, with one line for each entry."""
    lines = ",\n".join(json.dumps(entry) for entry in read_yaml(path))
    return f'{{"sha256": "{hash_of(path)}",\n"modes": {json.dumps(list(Mode))},\n"environments": [\n{lines}\n]}}\n'


def write_optimum(path: Path, env_id: str, optimum: RecordedOptimum) -> None:
    """Put an optimum into the entry of an id, and change no other line; raise RegistryError if there is no entry."""
    lines = path.read_text(encoding="utf-8").splitlines()
    starts = [index for index, line in enumerate(lines) if line.startswith("- id: ")] + [len(lines)]
    try:
        start = next(index for index in starts[:-1] if lines[index] == f"- id: {env_id}")
    except StopIteration:
        raise RegistryError(f"{path} has no entry {env_id}") from None
    end = next(index for index in starts if index > start)
    entry = [line for line in lines[start:end] if line.strip()]
    old_optimum = next((i for i, line in enumerate(entry) if line.startswith("  optimum:")), len(entry))
    # With None, YAML writes the innermost lists, an action's numbers, on one line.
    style = False if isinstance(optimum.action, str) else None
    block = yaml.safe_dump(
        {"optimum": optimum.model_dump(exclude_defaults=True)}, sort_keys=False, default_flow_style=style, width=100
    )
    entry[old_optimum:] = [f"  {line}" for line in block.splitlines()]
    blank_line = [""] if end < len(lines) else []
    write_text(path, "\n".join([*lines[:start], *entry, *blank_line, *lines[end:]]) + "\n")
    if path == registry_path():
        write_text(COPY, copy_of(path))
