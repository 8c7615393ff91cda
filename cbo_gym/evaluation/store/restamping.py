"""Written into a file of published results: that later code gives some of its runs too. Nothing else of it changes."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import polars as pl

from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.runs.locking import locked
from cbo_gym.evaluation.runs.restamp import Restamp
from cbo_gym.evaluation.runs.results import as_json, content_of, from_json, metadata_of, sealed
from cbo_gym.evaluation.store.published import COMPRESSED, SCHEMA, read_part
from cbo_gym.files import write_bytes

NONE = "[]"


def write_restamps(path: Path, looks: Mapping[str, Restamp]) -> None:
    """Add a restamp to some runs of a file, in one step; of several processes that write to a store one does at a time.

    Args:
        path: of the file.
        looks: what is added, by the keys of the runs.

    Raises:
        ArgumentError: if the file is damaged, or has no run of a key.
        OperationError: if it cannot be written, or another process has the store for too long.
    """
    with locked(path.parent):
        read_part(path)  # raises
        content = content_of(path)
        frame = pl.read_parquet(BytesIO(content))
        keys = frame["key"].to_list()
        if strange := sorted(set(looks) - set(keys)):
            raise ArgumentError(f"{path} has no run {strange[0]}; its runs were replaced meanwhile, so look again")
        before = frame["restamps"] if "restamps" in frame.columns else [NONE] * len(keys)
        after = [_added(said, looks.get(key)) for key, said in zip(keys, before, strict=True)]
        about = {name: value for name, value in metadata_of(content).items() if name != "checksum"}
        named = frame.with_columns(restamps=pl.Series(after, dtype=pl.String))
        write_bytes(path, sealed(named, about | {"schema": SCHEMA}, **COMPRESSED))


def _added(said: str, look: Restamp | None) -> str:
    return said if look is None else as_json([*from_json(said), look])
