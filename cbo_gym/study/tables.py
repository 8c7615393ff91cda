"""Tables of past rounds, from a file or in memory: what was measured and what was set in each round."""

from __future__ import annotations

import math
import os
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from itertools import islice
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from cbo_gym.errors import ArgumentError, did_you_mean, shown
from cbo_gym.files import csv_cell
from cbo_gym.study.table_files import MAX_BYTES, MAX_ROWS, Table, read_content, read_path, require_few

MISSING = {"", "na", "n/a", "n.a.", "#n/a", "#na", "<na>", "nan", "nat", "null", "none"}
MISSING |= {"-", "\N{EN DASH}", "\N{EM DASH}", "\N{MINUS SIGN}"}
# Characters of a cell that can be a name, as an export writes it, or a number.
MAX_NAME = 5_000
MAX_NUMBER = 100
TRUTH = {"true": 1.0, "false": 0.0}
DO = re.compile(r"do\s*\(\s*(.*?)\s*\)")
UNNAMED = re.compile(r"column \d+|Unnamed: \d+(\.\d+)*")
POINT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.I | re.A)
COMMA = re.compile(r"[+-]?(\d+,?\d*|,\d+)(e[+-]?\d+)?", re.I | re.A)
# "1,234" is 1234 in one country and 1.234 in another.
AMBIGUOUS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.A)
GROUPS = ",.'\N{RIGHT SINGLE QUOTATION MARK} \N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{THIN SPACE}_"
GROUPED = re.compile(rf"[+-]?\d{{1,3}}([{GROUPS}]\d{{3}})+([.,]\d*)?", re.A)
# What can be a number in some country or laboratory is no unit.
NUMERIC = re.compile(rf"[<>≤≥~±+-]*\s*[\d{GROUPS}]*\d[\d{GROUPS}]*%?")
INTERVAL = re.compile(r"\[([^,\]]+),([^,\]]+)\]")


class TableRow(NamedTuple):
    """One round of a table: its name in messages, as ``"line 7"``, the measured values, and what was set to what."""

    label: str
    values: Mapping[str, float | None]
    done: Mapping[str, Any]


@dataclass(frozen=True)
class Columns:
    """Names that the columns of a study's tables may have.

    Args:
        variables: Names of the variables.
        settable: Names of what can be set; their columns are ``do(X)``.
        units: Name -> unit.
        intervals: Whether what is set is an interval.
        ignored: Names of columns that the study leaves out if they are there.
    """

    variables: Sequence[str]
    settable: Sequence[str]
    units: Mapping[str, str]
    intervals: bool
    ignored: Sequence[str] = ()

    @cached_property
    def set_to(self) -> dict[str, str]:
        """``do(X)`` -> ``X``."""
        return {f"do({name})": name for name in self.settable}


def read_rows(given: Any, columns: Columns, *, do: Any = None, ignore: Iterable[str] | str = ()) -> list[TableRow]:
    """Read a table of past rounds.

    Args:
        given: As :meth:`cbo_gym.study.Study.add_data` takes it.
        columns: Names of the study's columns.
        do: What was set, for all rounds alike or as a table of as many rows.
        ignore: Names of columns to leave out.

    Raises:
        ArgumentError: naming the row, the column and what is wrong there.
    """
    ignored = [ignore] if isinstance(ignore, str) else ignore
    if not isinstance(ignored, Iterable):
        raise ArgumentError(f"ignore must be a list of names of columns; given {shown(ignore)}")
    known = {name: name for name in (*columns.variables, *columns.set_to)}
    table = _Reader("data", known, columns, ignored).read(given)
    done = [{}] * len(table) if do is None else _done(do, columns, len(table))
    rows = []
    for (label, cells), set_to in zip(table, done, strict=True):
        for name, value in set_to.items():
            if value is not None and cells.get(name) not in (None, value):
                raise ArgumentError(
                    f"{label}: the column {name} says {cells[name]} and the argument do says {value}; give one of them"
                )
        merged = {**cells, **{name: value for name, value in set_to.items() if value is not None}}
        values = {name: value for name, value in merged.items() if name not in columns.set_to}
        found = {bare: merged[name] for name, bare in columns.set_to.items() if merged.get(name) is not None}
        rows.append(TableRow(label, values, found))
    return rows


def _done(do: Any, columns: Columns, count: int) -> list[dict[str, Any]]:
    """What was set in each round, by the names of ``do(X)`` columns."""
    reader = _Reader("do", {form: name for name, bare in columns.set_to.items() for form in (name, bare)}, columns)
    rows = [cells for _, cells in reader.read(do)]
    if _is_mapping(do) and not reader.has_columns(do):
        return rows * count
    if len(rows) != count:
        raise ArgumentError(f"do has {len(rows)} rows for {count} rows of data")
    return rows


class _Reader:
    """Reads tables whose columns have some names.

    Args:
        argument: Name of the argument that gives them, ``"data"`` or ``"do"``.
        known: Header cell -> column of the study.
        columns: All names of the study.
        ignore: Names of columns to leave out.
    """

    def __init__(self, argument: str, known: Mapping[str, str], columns: Columns, ignore: Iterable[str] = ()) -> None:
        self._argument, self._exact, self._columns = argument, known, columns
        self._ignore = {_plain_name(str(name)) for name in ignore} - {""}
        self._left_out = self._ignore | {
            _plain_name(form) for name in columns.ignored for form in (name, f"do({name})")
        }
        # As spreadsheets change them, and as an export protects them from spreadsheets.
        self._alike: dict[str, str] = {}
        for given, name in self._exact.items():
            for form in (given, csv_cell(given)):
                self._alike.setdefault(_plain_name(form), name)

    def find(self, name: str) -> str | None:
        """The column that a header cell names."""
        if len(name) > MAX_NAME:
            return None
        alike = _plain_name(name)
        return self._exact.get(name) or self._alike.get(alike) or self._alike.get(DO.sub(r"do(\1)", alike))

    def read(self, given: Any) -> list[tuple[str, dict[str, Any]]]:
        """Label of each row, and its values by the names of the columns."""
        table = self._table(given)
        if self._argument == "do":
            table = replace(table, noun=f"do, {table.noun}")
        elif not table.rows:
            raise ArgumentError(f"{table.header or 'data'}: there are no rows of data")
        used = self._used(table)
        start = self._has_units(table, used)
        comma = _first_comma(table, used)
        rows = []
        for index in range(start, len(table.rows)):
            cells = {}
            for column, name in used.items():
                try:
                    cells[name] = self._value(table.rows[index][column], name, comma)
                except ArgumentError as error:
                    raise ArgumentError(f"{table.label(index)}: the value of {name} {error}") from error
            rows.append((table.label(index), cells))
        return rows

    # Columns -------------------------------------------------------------------------------------------------

    def _used(self, table: Table) -> dict[int, str]:
        """Index -> name of the columns that the study takes."""
        names = [_column_name(name, index) for index, name in enumerate(table.names)]
        where = f"{table.header}: " if table.header else ""
        if missing := sorted(self._ignore - set(map(_plain_name, names))):
            raise ArgumentError(
                f"{where}there is no column {missing[0]!r} to ignore{did_you_mean(missing[0], names)}; "
                f"the columns are {shown(names)}"
            )
        if names and all(map(POINT.fullmatch, names)):
            raise ArgumentError(
                f"{where}the columns must have the names of variables, {shown(list(self._exact))}; given {shown(names)}"
            )
        used: dict[int, str] = {}
        leading = True
        for index, name in enumerate(names):
            if _plain_name(name) in self._left_out:
                continue
            found = self.find(name)
            cells = [row[index] for row in table.rows]
            if found is None:
                leading = (
                    leading
                    and bool(UNNAMED.fullmatch(name))
                    and all(str(_scalar(cell)).strip().isdecimal() for cell in cells)
                )
                if not leading:
                    self._require_empty(table, name, cells)
                continue
            leading = False
            if found in used.values():
                first = next(column for column, other in used.items() if other == found)
                raise ArgumentError(
                    f"{where}columns {first + 1} and {index + 1} are both {found!r}; rename one, or delete it"
                )
            used[index] = found
        return used

    def _require_empty(self, table: Table, name: str, cells: Sequence[Any]) -> None:
        """Refuse a column that is no variable, unless it says nothing."""
        row = next((index for index, cell in enumerate(cells) if not _is_missing(cell)), None)
        if row is None:
            return
        where = table.header or table.label(row)
        advice = f"to leave the column out, ignore it: ignore=[{name!r}], --ignore {name!r}, or the field of the page"
        if UNNAMED.fullmatch(name):
            raise ArgumentError(f"{where}: {name} has no name, and it is not empty; name it, or {advice}")
        if self._argument == "do" or DO.fullmatch(name):
            target, settable = DO.sub(r"\1", name), self._columns.settable
            raise ArgumentError(
                f"{where}: {target!r} cannot be set{did_you_mean(target, settable)}; what can be is "
                f"{shown(list(settable))}{f'; {advice}' if self._argument == 'data' else ''}"
            )
        known = self._columns.variables
        raise ArgumentError(
            f"{where}: no variable is called {name!r}{did_you_mean(name, known)}; they are {shown(list(known))}; "
            f"{advice}"
        )

    def _has_units(self, table: Table, used: Mapping[int, str]) -> bool:
        """Whether the first row of a file has the units of the columns."""
        if not table.header or len(table.rows) < 2:
            return False
        row = {name: table.rows[0][index] for index, name in used.items() if not _is_missing(table.rows[0][index])}
        if not row or not all(isinstance(cell, str) and _is_word(cell.strip()) for cell in row.values()):
            return False
        for name, cell in row.items():
            unit = self._columns.units.get(self._columns.set_to.get(name, name))
            if unit is not None and len({_plain_name(one).strip("[]() ").casefold() for one in (unit, cell)}) > 1:
                raise ArgumentError(
                    f"{table.label(0)}: the unit of {name} is {cell!r}, and in this study it is {unit!r}; convert the "
                    "values, or delete the row of units if they are the same"
                )
        return True

    # Cells ---------------------------------------------------------------------------------------------------

    def _value(self, cell: Any, name: str, comma: str) -> Any:
        if not (self._columns.intervals and name in self._columns.set_to):
            return _number(cell, comma)
        if isinstance(cell, str) and (ends := INTERVAL.fullmatch(cell.strip())):
            # An export writes points, whatever the cells around have after a spreadsheet saved it.
            cell, comma = ends.groups(), ""
        if _is_missing(cell):
            return None
        pair = [_number(end, comma) for end in cell] if _is_sequence(cell) else []
        if len(pair) != 2 or None in pair:
            raise ArgumentError(f"must be an interval; given {shown(cell)}; write its two ends, as [0.2, 0.4]")
        return pair

    # Tables --------------------------------------------------------------------------------------------------

    def _table(self, given: Any) -> Table:
        if isinstance(given, str | os.PathLike):
            return read_path(Path(given), lambda cell: self.find(cell) is not None)
        if hasattr(given, "read"):
            given = given.read(MAX_BYTES + 1)
            given = given.encode(errors="replace") if isinstance(given, str) else given
        if isinstance(given, bytes | bytearray | memoryview):
            return read_content(bytes(given), lambda cell: self.find(cell) is not None)
        if _is_mapping(given):
            given = dict(given)
        if isinstance(given, dict) and self.has_columns(given):
            return _of_columns(list(given), list(given.values()))
        if (frame := _frame(given)) is not None:
            return _of_columns(*frame)
        try:
            rows = list(islice([given] if isinstance(given, dict) else given, MAX_ROWS + 1))
            rows = [dict(row) if _is_mapping(row) else row for row in rows]
        except TypeError as error:
            raise self._no_table(given) from error
        require_few(len(rows))
        if wrong := [row for row in rows if not isinstance(row, dict)]:
            raise self._no_table(wrong[0])
        names = list(dict.fromkeys(name for row in rows for name in row))
        return Table(names, [[row.get(name) for name in names] for row in rows], range(1, len(rows) + 1))

    def has_columns(self, given: Mapping[Any, Any]) -> bool:
        """Whether a mapping holds columns, and not one row."""

        def is_column(name: Any, cell: Any) -> bool:
            is_set = self._columns.intervals and self._exact.get(name) in self._columns.set_to
            return _is_sequence(cell) and not (is_set and len(cell) == 2 and not any(map(_is_sequence, cell)))

        return any(is_column(name, cell) for name, cell in given.items())

    def _no_table(self, given: Any) -> ArgumentError:
        return ArgumentError(
            f"{self._argument} must be a file, a data frame, or a list of mappings from names to numbers; given "
            f"{shown(given)}"
        )


def _frame(given: Any) -> tuple[list[Any], list[Any]] | None:
    """Names and columns of a data frame or a structured array."""
    if isinstance(given, np.ndarray):
        if given.dtype.names is None:
            raise ArgumentError(
                "an array has no names of columns; give a data frame: pl.DataFrame(array, schema=['x', 'y'])"
            )
        return list(given.dtype.names), [list(given[name]) for name in given.dtype.names]
    # Of pandas, which is not imported for this.
    if hasattr(given, "iloc") and hasattr(given, "columns"):
        levels = [level for level, name in enumerate(given.index.names) if name is not None]
        names = [given.index.names[level] for level in levels] + list(given.columns)
        index = [given.index.get_level_values(level).tolist() for level in levels]
        return names, index + [given.iloc[:, column].tolist() for column in range(given.shape[1])]
    try:
        if isinstance(given, pl.LazyFrame):
            given = given.head(MAX_ROWS + 1).collect()
        elif hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__"):
            given = pl.DataFrame(given)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise ArgumentError(f"the table cannot be read: {str(error).partition(chr(10))[0]}") from error
    if isinstance(given, pl.DataFrame):
        return given.columns, [column.to_list() for column in given.head(MAX_ROWS + 1).iter_columns()]
    return None


def _of_columns(names: Sequence[Any], columns: Sequence[Any]) -> Table:
    lengths = {name: len(column) if _is_sequence(column) else None for name, column in zip(names, columns, strict=True)}
    if len(set(lengths.values())) > 1:
        raise ArgumentError(f"all columns must be lists of one length; given {shown(lengths)}")
    count = len(columns[0]) if len(columns) else 0
    require_few(count)
    return Table(names, list(zip(*columns, strict=True)), range(1, count + 1))


# Names -------------------------------------------------------------------------------------------------------


def _column_name(name: Any, index: int) -> str:
    """A column's name as a string; of a tuple, as pandas has for several levels, the only part that is not empty."""
    parts = [part for part in (name if isinstance(name, tuple) else [name]) if not _is_missing(part)]
    if len(parts) > 1:
        raise ArgumentError(
            f"column {shown(name)} has several levels; give each column one name: frame.columns = ['x', 'y']"
        )
    return " ".join(str(parts[0]).split()) if parts else f"column {index + 1}"


def _plain_name(name: str) -> str:
    """A name without what programs change in it: white space, and how characters are composed."""
    return unicodedata.normalize("NFKC", " ".join(name.replace("\ufeff", "").split()))


# Cells -------------------------------------------------------------------------------------------------------


def _is_mapping(given: Any) -> bool:
    """Whether it is a mapping, or a row of pandas or of a database."""
    return hasattr(given, "keys") and not hasattr(given, "columns")


def _is_sequence(cell: Any) -> bool:
    return isinstance(cell, Collection) and not isinstance(cell, str | bytes | Mapping) and getattr(cell, "ndim", 1) > 0


def _scalar(cell: Any) -> Any:
    """A scalar of NumPy, or an array without dimensions, as Python's own."""
    if isinstance(cell, np.datetime64 | np.timedelta64):
        return None if np.isnat(cell) else cell
    return cell.item() if getattr(cell, "ndim", None) == 0 and hasattr(cell, "item") else cell


def _is_missing(cell: Any) -> bool:
    cell = _scalar(cell)
    if isinstance(cell, str):
        return _plain_name(cell).casefold() in MISSING
    if isinstance(cell, Decimal):
        return cell.is_nan()
    if isinstance(cell, float | np.floating):
        return math.isnan(cell)
    return cell is None or type(cell).__name__ in ("NAType", "NaTType")


def _is_word(text: str) -> bool:
    is_number = NUMERIC.fullmatch(text) or POINT.fullmatch(text) or text.casefold() in TRUTH
    return len(text) <= MAX_NUMBER and not is_number


def _first_comma(table: Table, used: Iterable[int]) -> str:
    """A cell with a decimal comma beyond doubt, and its row; empty if there is none."""
    for index, row in enumerate(table.rows):
        for cell in (row[column] for column in used):
            text = _ascii(cell) if isinstance(cell, str) and "," in cell else ""
            if text and COMMA.fullmatch(text) and not AMBIGUOUS.fullmatch(text):
                return f"{text!r} in {table.label(index)}"
    return ""


def _ascii(cell: str) -> str:
    return cell.strip().replace("\N{MINUS SIGN}", "-")


def _number(cell: Any, comma: str) -> float | None:
    """A cell as a number, None if it is missing.

    Args:
        cell: As it was given.
        comma: Cell with a decimal comma in the same table; empty if decimals have points.

    Raises:
        ArgumentError: which continues "the value of titre".
    """
    if _is_missing(cell):
        return None
    cell = _scalar(cell)
    if isinstance(cell, str):
        number = _parsed(_ascii(cell), comma)
    elif isinstance(cell, Real | Decimal):
        try:
            number = float(cell)
        except OverflowError:
            number = math.inf
    else:
        raise ArgumentError(f"must be a number; given {shown(cell)}")
    if not math.isfinite(number):
        raise ArgumentError(f"must be a finite number; given {shown(cell)}")
    return number


def _parsed(text: str, comma: str) -> float:
    """A number as it is written; raises as :func:`_number`."""
    if len(text) > MAX_NUMBER:
        raise ArgumentError(f"must be a finite number; given {shown(text)}")
    if POINT.fullmatch(text) and not (comma and "." in text):
        return float(text)
    if comma and COMMA.fullmatch(text):
        return float(text.replace(",", "."))
    if text.casefold() in TRUTH:
        return TRUTH[text.casefold()]
    if POINT.fullmatch(text):
        raise ArgumentError(
            f"has a decimal point, {shown(text)}, and there is a decimal comma, {comma}; use one of them"
        )
    if AMBIGUOUS.fullmatch(text):
        point, none = text.replace(",", "."), text.replace(",", "")
        raise ArgumentError(f"must be a number, and {text!r} may be {none} or {point}; write which of them it is")
    if GROUPED.fullmatch(text):
        raise ArgumentError(f"must be a number without separators between thousands; given {shown(text)}")
    if NUMERIC.fullmatch(text) and text.endswith("%"):
        raise ArgumentError(
            f"must be a number in the variable's unit, without a percent sign; given {shown(text)}; write it as the "
            "study has it, 0.12 or 12 for 12%"
        )
    raise ArgumentError(f"must be a finite number; given {shown(text)}; leave the cell empty if it was not measured")
