"""Write files atomically (completely or not at all), and tables as CSV that is safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import errno
import io
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cbo_gym.errors import ArgumentError, ArgumentTypeError, OperationError, printable, short_repr

if TYPE_CHECKING:
    import polars as pl

# Remedies for errors of the operating system.
_REMEDIES = {
    errno.ENOSPC: "free space on its disk, and try again",
    errno.EDQUOT: "free space in your quota, and try again",
    errno.EACCES: "give a path that you may write to",
    errno.EPERM: "give a path that you may write to",
    errno.EROFS: "give a path that is writable",
    errno.ENAMETOOLONG: "give a shorter name",
    errno.EISDIR: "it is a folder; give a file",
    errno.EEXIST: "a folder of this path is a file; give another path",
    errno.ENOTDIR: "a folder of this path is a file; give another path",
}
# First characters of formulas in spreadsheets.
FORMULA_STARTS = ("=", "+", "-", "@")


def expand_home(path: os.PathLike[str] | str) -> Path:
    """Return a path with the home directory in place of a leading ``~``, which only shells replace."""
    # Unlike Path.expanduser, this keeps "~$past.xlsx" as it is.
    return Path(os.path.expanduser(path))  # noqa: PTH111


def require_file(path: Path | str, *endings: str) -> Path:
    """Return ``path`` as a Path if a file of the given format can be written there; nothing is written yet.

    Args:
        path: Path of the file.
        endings: Extensions of the format, with their dots; the first is suggested in errors.
    """
    if not isinstance(path, str | Path):
        raise ArgumentTypeError(f"the file must be given by its path; given {short_repr(path)}")
    file = expand_home(path)
    if file.is_dir():
        raise ArgumentError(f"{printable(str(file))} is a folder; give a file in it, such as new{endings[0]}")
    if not file.name.lower().endswith(endings):
        raise ArgumentError(
            f"{printable(str(file))} does not end in {' or '.join(endings)}, and no other format is written; give a "
            f"name such as {printable(file.stem)}{endings[0]}"
        )
    return file


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path next to ``path``, and rename it to ``path`` if the block succeeds, else remove it.

    The temporary name starts with a dot and keeps the suffix, from which some writers infer the format.

    Raises:
        OperationError: if the operating system reports an error: the disk is full, or the folder is not writable. An
            existing file at ``path`` does not change.
    """
    temporary = path.with_name(f".{path.stem}-{uuid.uuid4().hex}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        temporary.replace(path)
    except OSError as error:
        remedy = _REMEDIES.get(error.errno or 0, "check that path, and try again")
        raise OperationError(f"cannot write {path}: {error.strerror or error}; {remedy}") from error
    finally:
        # The folder may not exist.
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_text(path: Path, content: str) -> None:
    """Write a string to ``path`` in one step; raises as :func:`replacing` does."""
    write_bytes(path, content.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path`` in one step; raises as :func:`replacing` does."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def csv_cell(string: str) -> str:
    """Return a string as a cell of a CSV file: one line, with an apostrophe in front of what looks like a formula."""
    line = printable(string)
    looks_like_formula = line.startswith(FORMULA_STARTS) or string.startswith(("\t", "\r"))
    return f"'{line}" if looks_like_formula else line


def csv_of(frame: pl.DataFrame) -> str:
    """Return a table as CSV; its strings and column names pass through :func:`csv_cell`."""
    import polars as pl

    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(map(csv_cell, frame.columns))
    cells = frame.with_columns(
        pl.col(pl.String).map_elements(csv_cell, return_dtype=pl.String),
        pl.col(pl.List(pl.Float64)).map_elements(lambda numbers: str(list(numbers)), return_dtype=pl.String),
    )
    return header.getvalue() + cells.write_csv(include_header=False)
