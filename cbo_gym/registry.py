"""envs_registry.yaml: the one list of environments, validated and registered with Gymnasium."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

import gymnasium as gym
import yaml
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt, ValidationError

from cbo_gym.files import write_text
from cbo_gym.task import Mode

FILE_NAME = "envs_registry.yaml"
ENTRY_POINTS = {
    Mode.SOFT: ("cbo_gym.envs.soft:SoftEnv", "cbo_gym.envs.vector:SoftVectorEnv"),
    Mode.HARD: ("cbo_gym.envs.hard:HardEnv", "cbo_gym.envs.vector:HardVectorEnv"),
    Mode.CONTEXTUAL: ("cbo_gym.envs.contextual:ContextualEnv", "cbo_gym.envs.vector:ContextualVectorEnv"),
    Mode.AGGREGATED: ("cbo_gym.envs.aggregated:AggregatedEnv", "cbo_gym.envs.vector:AggregatedVectorEnv"),
    Mode.MASKED: ("cbo_gym.envs.masked:MaskedEnv", "cbo_gym.envs.vector:MaskedVectorEnv"),
}
CUSTOM_ROUNDS = 100
ID_PATTERN = r"^CBO/[A-Za-z0-9]+(-[A-Za-z0-9]+)*-v\d+$"


class RegistryError(ValueError):
    """The registry file is broken; the message names the entry and the field."""


def custom_id(mode: Mode) -> str:
    """The id under which a problem of the user's own is made: ``gym.make(id, problem=...)``."""
    return "CBO/Custom-v0" if mode is Mode.SOFT else f"CBO/Custom-{mode.capitalize()}-v0"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class InitialData(_Strict):
    """Sizes of the data that every agent is given before it acts.

    ``observational`` rounds without intervention, then ``random`` interventions: in soft mode their number (``2q+1``
    for q action coordinates), in hard mode the number for each non-empty target set.
    """

    observational: NonNegativeInt
    random: NonNegativeInt | Literal["2q+1"]


class RecordedOptimum(_Strict):
    """The optimum of E[Y | action] as ``command`` computed it; in contextual mode of E[Y] over all policies.

    ``action`` holds [0, 1] coordinates in soft mode, those of the lower and then the upper corner of a point-like
    cell in aggregated mode, native values by variable name in hard mode, the 0/1 super arm in masked mode, and the
    policy in words in contextual mode.
    ``random_value`` is the mean of E[Y | action] over the action space's own random actions.
    """

    value: float
    action: list[float] | dict[str, float] | str
    standard_error: Annotated[float, Field(ge=0)]
    random_value: float
    random_standard_error: Annotated[float, Field(ge=0)]
    command: str


class EnvEntry(_Strict):
    """One environment: what ``gym.make`` needs, and where the benchmark comes from."""

    id: Annotated[str, Field(pattern=ID_PATTERN)]
    problem: Annotated[str, Field(pattern=r"^[\w.]+:\w+$")]
    mode: Mode
    kwargs: dict[str, Any] = {}
    horizon: PositiveInt
    initial_data: InitialData
    paper: str
    section: str
    tags: list[str] = []
    optimum: RecordedOptimum | None = None


def registry_path() -> Path:
    """Where envs_registry.yaml lies: inside the installed package, or at the top of a checkout."""
    packaged = Path(str(files("cbo_gym"))) / FILE_NAME
    return packaged if packaged.is_file() else packaged.parent.parent / FILE_NAME


def load_registry(path: Path | None = None) -> tuple[EnvEntry, ...]:
    """Read and validate a registry file; None for the package's own.

    Raises:
        RegistryError: if the file is missing or no YAML list, an entry is invalid, or an id comes twice.
    """
    path = path or registry_path()
    try:
        loaded = yaml.load(path.read_bytes(), Loader=_SafeLoader)
    except (OSError, yaml.YAMLError) as error:
        raise RegistryError(f"cannot read {path}: {error}") from error
    if not isinstance(loaded, list):
        raise RegistryError(f"{path} must hold a list of environments; it holds {type(loaded).__name__}")
    entries = tuple(_parse(path, place, item) for place, item in enumerate(loaded, start=1))
    seen: set[str] = set()
    for entry in entries:
        if entry.id in seen:
            raise RegistryError(f"{path}: the id {entry.id} is given twice")
        seen.add(entry.id)
    return entries


_SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _parse(path: Path, place: int, item: Any) -> EnvEntry:
    name = item.get("id", "without id") if isinstance(item, dict) else "not a mapping"
    try:
        return EnvEntry.model_validate(item)
    except ValidationError as error:
        problems = "; ".join(
            f"field {'.'.join(map(str, e['loc'])) or '(the entry)'}: {e['msg']}, given {e['input']!r}"
            for e in error.errors()
        )
        raise RegistryError(f"{path}, entry {place} ({name}): {problems}") from error


@cache
def entries() -> tuple[EnvEntry, ...]:
    """The package's own registry, read once."""
    return load_registry()


def find_entry(env_id: str) -> EnvEntry | None:
    """The registry's entry for an id, or None."""
    return next((entry for entry in entries() if entry.id == env_id), None)


def initial_data_of(env_id: str) -> InitialData:
    """The registered sizes; for a problem of the user's own, those that the papers use in its mode."""
    entry = find_entry(env_id)
    if entry is not None:
        return entry.initial_data
    if env_id == custom_id(Mode.SOFT):
        return InitialData(observational=0, random="2q+1")
    if env_id == custom_id(Mode.HARD):
        return InitialData(observational=10, random=2)
    return InitialData(observational=0, random=0)


def register_all() -> None:
    """Register every environment with Gymnasium; those already registered are left alone.

    ``CBO/Custom-v0`` (and ``-Hard-``, ``-Aggregated-`` ...) take a problem of the user's own as the keyword
    ``problem``.
    """
    for mode, (scalar, vector) in ENTRY_POINTS.items():
        if custom_id(mode) not in gym.registry:
            gym.register(
                custom_id(mode), entry_point=scalar, vector_entry_point=vector, max_episode_steps=CUSTOM_ROUNDS
            )
    for entry in entries():
        if entry.id in gym.registry:
            continue
        scalar, vector = ENTRY_POINTS[entry.mode]
        gym.register(
            entry.id,
            entry_point=scalar,
            vector_entry_point=vector,
            max_episode_steps=entry.horizon,
            kwargs={"problem": entry.problem, **entry.kwargs},
        )


def write_optimum(path: Path, env_id: str, optimum: RecordedOptimum) -> None:
    """Put ``optimum`` into the entry of ``env_id``; every other line of the file stays as it is.

    Raises:
        RegistryError: if the file has no such entry.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    starts = [place for place, line in enumerate(lines) if line.startswith("- id: ")] + [len(lines)]
    try:
        first = next(place for place in starts[:-1] if lines[place] == f"- id: {env_id}")
    except StopIteration:
        raise RegistryError(f"{path} has no entry {env_id}") from None
    last = next(place for place in starts if place > first)
    entry = [line for line in lines[first:last] if line.strip()]
    old = next((i for i, line in enumerate(entry) if line.startswith("  optimum:")), len(entry))
    style = False if isinstance(optimum.action, str) else None  # None: only an action's numbers go on one line
    block = yaml.safe_dump({"optimum": optimum.model_dump()}, sort_keys=False, default_flow_style=style, width=100)
    entry[old:] = [f"  {line}" for line in block.splitlines()]
    gap = [""] if last < len(lines) else []
    write_text(path, "\n".join([*lines[:first], *entry, *gap, *lines[last:]]) + "\n")
