"""Registration of the environments with Gymnasium, from a copy of the registry that needs no YAML parser.

``envs_registry.json`` is a copy of ``envs_registry.yaml`` with its hash. If the YAML file has changed, it is read
instead. ``make registry`` updates the copy.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import gymnasium as gym

FILE_NAME = "envs_registry.yaml"
COPY = Path(__file__).with_name("envs_registry.json")
ENTRY_POINT = "cbo_gym.envs:CausalBanditEnv"
VECTOR_ENTRY_POINT = "cbo_gym.envs:CausalBanditVectorEnv"
CUSTOM_ROUNDS = 100
# The tag of environments whose rewards are arrays.
SEVERAL = "several-objectives"


def registry_path() -> Path:
    """Return the path of envs_registry.yaml: inside the installed package, or at the top of a checkout."""
    packaged = Path(__file__).with_name(FILE_NAME)
    return packaged if packaged.is_file() else packaged.parents[2] / FILE_NAME


def read_copy() -> dict[str, Any] | None:
    """Return the modes and the entries of the registry; None without an up-to-date copy."""
    try:
        copy: dict[str, Any] = json.loads(COPY.read_text(encoding="utf-8"))
        return copy if copy["sha256"] == hash_of(registry_path()) else None
    except (OSError, ValueError, KeyError):
        return None


def hash_of(path: Path) -> str:
    """Return the SHA-256 of a text file, independent of its line endings."""
    return hashlib.sha256(path.read_bytes().replace(b"\r\n", b"\n")).hexdigest()


def custom_id(mode: str) -> str:
    """Return the id of custom problems in a mode: ``gym.make(id, problem=...)``."""
    return "CBO/Custom-v0" if mode == "soft" else f"CBO/Custom-{mode.capitalize()}-v0"


def register_copy() -> bool:
    """Register every environment from the copy of the registry; return whether there is an up-to-date copy.

    ``CBO/Custom-v0`` (and ``-Hard-``, ``-Aggregated-`` ...) take a custom problem as the keyword ``problem``.
    """
    copy = read_copy()
    if copy is None:
        return False
    for mode in copy["modes"]:
        register(custom_id(mode), {"mode": mode, "problem": None}, CUSTOM_ROUNDS)
    for entry in copy["environments"]:
        make_kwargs = {"problem": entry["problem"], "mode": entry["mode"], **entry.get("kwargs", {})}
        register(entry["id"], make_kwargs, entry["horizon"], entry.get("tags", ()))
    return True


def register(env_id: str, make_kwargs: dict[str, Any], horizon: int, tags: Any = ()) -> None:
    """Register one environment with Gymnasium, unless its id is taken."""
    if env_id not in gym.registry:
        gym.register(
            env_id,
            ENTRY_POINT,
            max_episode_steps=horizon,
            # The checker warns of rewards that are arrays.
            disable_env_checker=SEVERAL in tags,
            kwargs=make_kwargs,
            vector_entry_point=VECTOR_ENTRY_POINT,
        )
