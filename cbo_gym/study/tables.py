"""Tables of past rounds, from a file or in memory, read into the measured and the set values of each round.

Spreadsheets and exports change names and write numbers in many forms. Where a cell could have two meanings, the reader
asks the user with an error instead of guessing.
"""

from __future__ import annotations

import datetime
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
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from cbo_gym._util.arguments import named_values, scalar_of
from cbo_gym._util.files import csv_cell, expand_home
from cbo_gym.errors import ArgumentError, did_you_mean, short_repr
from cbo_gym.study.precision import COUNTS
from cbo_gym.study.table_files import ERROR_CELL, MAX_BYTES, MAX_ROWS, Table, read_content, read_path, require_few

# Cells without a value.
MISSING = {"", "na", "n/a", "n.a.", "#n/a", "#na", "#nv", "#n/d", "<na>", "nan", "nat", "null", "none"}
MISSING |= {"-", "\N{EN DASH}", "\N{EM DASH}", "\N{MINUS SIGN}"}
# Numbers that programs write where nothing was measured.
SENTINELS = {-999.0, -9999.0, -99999.0}
# Largest numbers of characters of a cell that is read as a name, and as a number.
MAX_NAME, MAX_NUMBER = 5_000, 100
# Further columns of no variable that a message names.
MAX_NAMED = 20
# Labels of rows below a table that are not rounds.
SUMMARIES = {"total", "totals", "subtotal", "grand total", "sum", "mean", "average", "median"}
SUMMARIES |= {"summe", "gesamt", "mittelwert", "durchschnitt", "somme", "moyenne", "suma", "promedio"}
TRUTH = {"true": 1.0, "false": 0.0}
# Columns of the name of an earlier campaign, and of the variables whose mechanisms differ there.
CAMPAIGN, DIFFERS = "campaign", "differs"
# Header of a column of set values; header with a unit; header that a program gives to a column without a header.
DO = re.compile(r"do\s*\(\s*(.*?)\s*\)", re.I)
WITH_UNIT = re.compile(r"(.*\S)\s*(\(.*\)|\[.*\]|(,|/| in) .*)")
UNNAMED = re.compile(r"column \d+|Unnamed: \d+(\.\d+)*")
# Numbers with a decimal point and with a decimal comma.
DECIMAL_POINT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.I | re.A)
DECIMAL_COMMA = re.compile(r"[+-]?(\d+,?\d*|,\d+)(e[+-]?\d+)?", re.I | re.A)
# "1,234" is 1234 in one country and 1.234 in another.
AMBIGUOUS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.A)
# Separators between groups of three digits.
GROUPS = ",.'\N{RIGHT SINGLE QUOTATION MARK} \N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{THIN SPACE}_"
GROUPED = re.compile(rf"[+-]?\d{{1,3}}([{GROUPS}]\d{{3}})+([.,]\d*)?", re.A)
# What some country or laboratory may write for a number, so that it cannot be a unit.
NUMERIC = re.compile(rf"[<>≤≥~±+-]*\s*[\d{GROUPS}]*\d[\d{GROUPS}]*%?")
INTERVAL = re.compile(r"\[([^,\]]+),([^,\]]+)\]")


class TableRow(NamedTuple):
    """One round of a table.

    Attributes:
        label: name of the row in messages, such as ``"line 7"``.
        values: variable -> measured value.
        done: variable or parameter -> value that was set.
        std: variable -> standard error.
        campaign: name of the earlier campaign; None for this one.
        differs: names of the variables whose mechanisms differ there, separated by commas.
    """

    label: str
    values: Mapping[str, Any]
    done: Mapping[str, Any]
    std: Mapping[str, float | None] = {}
    campaign: str | None = None
    differs: str | None = None


@dataclass(frozen=True)
class Columns:
    """Names that the columns of a study's tables may have.

    Args:
        variables: names of the variables.
        settable: names of variables or parameters that can be set; their columns are ``do(X)``.
        units: variable or parameter -> unit.
        sets_intervals: whether the values that are set are intervals.
        ignored: names of columns that the study drops.
        categories: variable or parameter that is a category -> its labels.
    """

    variables: Sequence[str]
    settable: Sequence[str]
    units: Mapping[str, str]
    sets_intervals: bool
    ignored: Sequence[str]
    categories: Mapping[str, Sequence[str]]

    @cached_property
    def campaign_columns(self) -> list[str]:
        """Columns about the campaign of a round, unless variables have these names."""
        return [name for name in (CAMPAIGN, DIFFERS) if name not in self.variables]

    def labels_of(self, column: str) -> Sequence[str]:
        """Return the labels of a column of categories; empty for a column of numbers."""
        return self.categories.get(self.do_columns.get(column, column), ())

    def has_words(self, column: str) -> bool:
        """Return whether a column has words rather than numbers."""
        return bool(self.labels_of(column)) or column in self.campaign_columns

    @cached_property
    def std_columns(self) -> dict[str, str]:
        """Column ``std(X)`` -> variable ``X``."""
        return {f"std({name})": name for name in self.variables if name not in self.categories}

    @cached_property
    def count_columns(self) -> dict[str, str]:
        """Column ``count(X)`` -> variable ``X``."""
        return {f"count({name})": name for name in self.std_columns.values()}

    @cached_property
    def do_columns(self) -> dict[str, str]:
        """Column ``do(X)`` -> variable or parameter ``X``."""
        return {f"do({name})": name for name in self.settable}


def read_rows(data: Any, columns: Columns, *, do: Any = None, ignore: Iterable[str] | str = ()) -> list[TableRow]:
    """Read a table of past rounds.

    Args:
        data: the table, in any form that :meth:`cbo_gym.study.Study.add_data` takes.
        columns: names of the study's columns.
        do: the values that were set: one mapping for all rounds, or a table with a row per round.
        ignore: names of columns to leave out.
    """
    ignored = [ignore] if isinstance(ignore, str) else ignore
    if not isinstance(ignored, Iterable):
        raise ArgumentError(f"ignore must be a list of names of columns; given {short_repr(ignore)}")
    names = (
        *columns.variables,
        *columns.do_columns,
        *columns.std_columns,
        *columns.count_columns,
        *columns.campaign_columns,
    )
    table = _Reader("data", {name: name for name in names}, columns, ignored).read(data)
    set_values = [{}] * len(table) if do is None else _read_do(do, columns, len(table))
    rows = []
    for (label, cells), added in zip(table, set_values, strict=True):
        for column, value in added.items():
            if value is None:
                continue
            if cells.get(column) not in (None, value):
                raise ArgumentError(
                    f"{label}: the column {column} says {cells[column]} and the argument do says {value}; give one of "
                    "them"
                )
            cells[column] = value
        values = {name: value for name, value in cells.items() if name in columns.variables}
        std = {columns.std_columns[column]: value for column, value in cells.items() if column in columns.std_columns}
        for column, name in columns.count_columns.items():
            if (count := cells.get(column)) is not None:
                values[name] = _format_counts(label, name, values.get(name), count)
                std.pop(name, None)
        done = {name: cells[column] for column, name in columns.do_columns.items() if cells.get(column) is not None}
        rows.append(TableRow(label, values, done, std, **{name: cells.get(name) for name in columns.campaign_columns}))
    return rows


def _format_counts(label: str, name: str, share: Any, count: float) -> str:
    """Return a share of ``count`` in the form ``"37 of 1000"``."""
    hits = share * count if isinstance(share, float) else math.nan
    if not (count.is_integer() and 0.0 <= hits <= count and math.isclose(hits, round(hits), abs_tol=1e-6)):
        raise ArgumentError(
            f"{label}: {name} must be a share of count({name}), a whole number; given {share} of {count:g}; counts can "
            f"also be written '37 of 1000'; a mean of repeats has its standard error in std({name}) instead of a count"
        )
    return f"{round(hits)} of {int(count)}"


def _read_do(do: Any, columns: Columns, count: int) -> list[dict[str, Any]]:
    """Return column ``do(X)`` -> value that was set, for each round."""
    # Headers may be "do(X)" or "X".
    headers = {header: column for column, name in columns.do_columns.items() for header in (column, name)}
    reader = _Reader("do", headers, columns)
    rows = [cells for _, cells in reader.read(do)]
    mapping = named_values(do)
    if isinstance(mapping, dict) and not reader.has_columns(mapping):
        return rows * count
    if len(rows) != count:
        raise ArgumentError(f"do has {len(rows)} rows for {count} rows of data")
    return rows


class _Reader:
    """Reader of tables whose columns have known names.

    Args:
        argument: name of the argument that holds the table, ``"data"`` or ``"do"``.
        headers: header cell -> column of the study.
        columns: all names of the study.
        ignore: names of columns to leave out.
    """

    def __init__(self, argument: str, headers: Mapping[str, str], columns: Columns, ignore: Iterable[str] = ()) -> None:
        self._argument, self._headers, self._columns = argument, headers, columns
        self._ignore = {_plain_name(str(name)) for name in ignore} - {""}
        dropped = [header for name in columns.ignored for header in (name, f"do({name})")]
        self._left_out = self._ignore | set(map(_plain_name, dropped))
        # Spreadsheets change names, and an export escapes those that a spreadsheet would run as formulas.
        self._plain_headers: dict[str, str] = {}
        for header, column in headers.items():
            for spelling in (header, csv_cell(header)):
                self._plain_headers.setdefault(_plain_name(spelling), column)

    def find(self, header: str) -> str | None:
        """Return the column of the study that a header cell names, with or without its unit; None for any other."""
        if len(header) > MAX_NAME:
            return None
        by_plain, plain = self._plain_headers, _plain_name(header)
        column = self._headers.get(header) or by_plain.get(plain) or by_plain.get(DO.sub(r"do(\1)", plain))
        if column is None and (with_unit := WITH_UNIT.fullmatch(plain)):
            column = by_plain.get(with_unit[1])
            return column if column and _is_same_unit(self._unit(column), with_unit[2]) else None
        return column

    def _is_name(self, cell: str) -> bool:
        return self.find(cell) is not None

    def read(self, source: Any) -> list[tuple[str, dict[str, Any]]]:
        """Return for each row its label in messages, and a mapping from columns of the study to values."""
        table = self._table(source)
        if self._argument == "do":
            table = replace(table, noun=f"do, {table.noun}")
        elif not table.rows:
            raise ArgumentError(f"{table.header or 'data'}: there are no rows of data")
        used = self._find_columns(table)
        self._refuse_summaries(table, used)
        comma = _first_comma(
            table, [index for index, name in used.items() if name not in self._columns.campaign_columns]
        )
        rows = []
        for index in range(1 if self._has_row_of_units(table, used) else 0, len(table.rows)):
            cells = {}
            for column, name in used.items():
                try:
                    cells[name] = self._value(table.rows[index][column], name, comma)
                except ArgumentError as error:
                    raise ArgumentError(f"{table.label(index)}: the value of {name} {error}") from error
            rows.append((table.label(index), cells))
        for name in used.values():
            _refuse_sentinels(name, {label: cells[name] for label, cells in rows if isinstance(cells[name], float)})
        return rows

    def _refuse_summaries(self, table: Table, used: Mapping[int, str]) -> None:
        """Refuse a row with a label such as "total" or "mean", which is not a round."""
        for column in range(len(table.names)):
            if self._columns.has_words(used.get(column, "")):
                continue
            for index, row in enumerate(table.rows):
                cell = row[column]
                if isinstance(cell, str) and _plain_name(cell).rstrip(":").casefold() in SUMMARIES:
                    raise ArgumentError(
                        f"{table.label(index)}: {cell!r} in column {short_repr(table.names[column])} says that the row "
                        "is a summary and no round; delete the row, or the column if it is a round"
                    )

    # Columns -------------------------------------------------------------------------------------------------

    def _find_columns(self, table: Table) -> dict[int, str]:
        """Return index of a column of the table -> column of the study, for those that the study takes."""
        names = [_column_name(name, index) for index, name in enumerate(table.names)]
        prefix = f"{table.header}: " if table.header else ""
        if missing := sorted(self._ignore - set(map(_plain_name, names))):
            raise ArgumentError(
                f"{prefix}there is no column {missing[0]!r} to ignore{did_you_mean(missing[0], names)}; "
                f"the columns are {short_repr(names)}"
            )
        if names and all(map(DECIMAL_POINT.fullmatch, names)):
            raise ArgumentError(
                f"{prefix}the columns must have the names of variables, {short_repr(list(self._headers))}; given "
                f"{short_repr(names)}"
            )
        used: dict[int, str] = {}
        # The first columns may be numbers of rows.
        may_be_row_numbers = True
        for index, name in enumerate(names):
            if _plain_name(name) in self._left_out:
                continue
            column = self.find(name)
            if column is None:
                cells = [row[index] for row in table.rows]
                are_numbers = all(str(_scalar(cell)).strip().isdecimal() for cell in cells)
                may_be_row_numbers = may_be_row_numbers and are_numbers and bool(UNNAMED.fullmatch(name))
                if not may_be_row_numbers:
                    self._require_empty(table, name, cells)
                continue
            may_be_row_numbers = False
            if column in used.values():
                earlier = next(other for other in used if used[other] == column)
                raise ArgumentError(
                    f"{prefix}columns {earlier + 1} and {index + 1} are both {column!r}; rename one, or delete it"
                )
            used[index] = column
        return used

    def _unknown(self, table: Table) -> list[str]:
        """Return the names of columns that are not empty, and not columns of the study."""
        names = [_column_name(name, index) for index, name in enumerate(table.names)]
        return [
            name
            for index, name in enumerate(names)
            if _plain_name(name) not in self._left_out
            and self.find(name) is None
            and not all(_is_missing(row[index]) for row in table.rows)
        ]

    def _require_empty(self, table: Table, name: str, cells: Sequence[Any]) -> None:
        """Refuse a column that the study does not know, unless it is empty."""
        row = next((index for index, cell in enumerate(cells) if not _is_missing(cell)), None)
        if row is None:
            return
        where, known = table.header or table.label(row), self._columns.variables
        others = [other for other in self._unknown(table) if other != name]
        misspelt = [other for other in others if did_you_mean(other, known)]
        unknown = [name, *(other for other in others if other not in misspelt)][: MAX_NAMED + 1]
        what = "the column out, ignore it" if len(unknown) == 1 else "these columns out, ignore them"
        options = " ".join(f"--ignore {each!r}" for each in unknown)
        advice = f"to leave {what}: ignore={unknown}, {options}, or the field of the page"
        if UNNAMED.fullmatch(name):
            raise ArgumentError(f"{where}: {name} has no name, and it is not empty; name it, or {advice}")
        if self._argument == "do" or DO.fullmatch(name):
            target, settable = DO.sub(r"\1", name), self._columns.settable
            raise ArgumentError(
                f"{where}: {target!r} cannot be set{did_you_mean(target, settable)}; the settable names are "
                f"{short_repr(list(settable))}{f'; {advice}' if self._argument == 'data' else ''}"
            )
        for header, *column_cells in zip(table.names, *table.rows, strict=True):
            if self._columns.has_words(self.find(str(header)) or ""):
                continue
            columns = [self.find(cell) for cell in (header, *column_cells) if isinstance(cell, str)]
            variables = [column for column in columns if column in known]
            if len(set(variables)) > 1:
                raise ArgumentError(
                    f"{where}: the names of variables {short_repr(variables)} are below each other; give the table a "
                    "column for each variable and a row for each round"
                )
        bare_name = name
        if with_unit := WITH_UNIT.fullmatch(_plain_name(name)):
            bare_name = with_unit[1]
            if (column := self._plain_headers.get(bare_name)) and self._unit(column) is not None:
                advice = f"or delete the unit if both are the same; {advice}"
                raise self._unit_error(where, column, with_unit[2], advice)
        names = " nor ".join(map(repr, [name, *misspelt[:MAX_NAMED]]))
        raise ArgumentError(
            f"{where}: no variable is called {names}{did_you_mean(bare_name, known)}; they are "
            f"{short_repr(list(known))}; {advice}"
        )

    def _has_row_of_units(self, table: Table, used: Mapping[int, str]) -> bool:
        """Return whether the first row of a file has the units of the columns."""
        if not table.header or len(table.rows) < 2:
            return False
        row = {
            name: table.rows[0][index]
            for index, name in used.items()
            if not _is_missing(table.rows[0][index]) and not self._columns.has_words(name)
        }
        if not row or not all(isinstance(cell, str) and _is_word(cell.strip()) for cell in row.values()):
            return False
        for name, cell in row.items():
            if (unit := self._unit(name)) is not None and not _is_same_unit(unit, cell):
                raise self._unit_error(table.label(0), name, cell, "or delete the row of units if they are the same")
        return True

    def _unit(self, column: str) -> str | None:
        return self._columns.units.get(self._columns.do_columns.get(column, column))

    def _unit_error(self, where: str, column: str, unit: str, advice: str) -> ArgumentError:
        return ArgumentError(
            f"{where}: the unit of {column} is {unit!r}, and in this study it is {self._unit(column)!r}; convert the "
            f"values, {advice}"
        )

    # Cells ---------------------------------------------------------------------------------------------------

    def _value(self, cell: Any, name: str, comma: str) -> Any:
        """Return the value of a cell in a column of the study; ``comma`` is that of :func:`_number`."""
        if labels := self._columns.labels_of(name):
            return _label(cell, labels)
        if name in self._columns.campaign_columns:
            cell = _scalar(cell)
            if _is_missing(cell):
                return None
            # A spreadsheet may have the year of a campaign as a number.
            return f"{cell:g}" if isinstance(cell, float) else str(cell).strip()
        if not (self._columns.sets_intervals and name in self._columns.do_columns):
            is_counts = isinstance(cell, str) and name in self._columns.variables and COUNTS.fullmatch(cell)
            return cell if is_counts else _number(cell, comma)
        if isinstance(cell, str) and (ends := INTERVAL.fullmatch(cell.strip())):
            # An export writes decimal points in intervals; a spreadsheet that saves the file leaves them as they are.
            cell, comma = ends.groups(), ""
        if _is_missing(cell):
            return None
        pair = [_number(end, comma) for end in cell] if _is_sequence(cell) else []
        if len(pair) != 2 or None in pair:
            raise ArgumentError(f"must be an interval; given {short_repr(cell)}; write its two ends, as [0.2, 0.4]")
        return pair

    # Tables --------------------------------------------------------------------------------------------------

    def _table(self, source: Any) -> Table:
        if isinstance(source, str | os.PathLike):
            return read_path(expand_home(source), self._is_name)
        if hasattr(source, "read"):
            source = source.read(MAX_BYTES + 1)
            source = source.encode(errors="replace") if isinstance(source, str) else source
        if isinstance(source, bytes | bytearray | memoryview):
            return read_content(bytes(source), self._is_name)
        source = named_values(source)
        if isinstance(source, dict) and self.has_columns(source):
            return _table_of_columns(list(source), list(source.values()))
        if (frame := _frame(source)) is not None:
            return _table_of_columns(*frame).below_title(self._is_name)
        try:
            rows = list(islice([source] if isinstance(source, dict) else source, MAX_ROWS + 1))
            rows = list(map(named_values, rows))
        except TypeError as error:
            raise self._type_error(source) from error
        require_few(len(rows))
        if wrong := [row for row in rows if not isinstance(row, dict)]:
            raise self._type_error(wrong[0])
        names = list(dict.fromkeys(name for row in rows for name in row))
        return Table(names, [[row.get(name) for name in names] for row in rows], range(1, len(rows) + 1))

    def has_columns(self, columns: Mapping[Any, Any]) -> bool:
        """Return whether a mapping holds columns rather than one row."""

        def is_column(name: Any, cell: Any) -> bool:
            may_be_interval = self._columns.sets_intervals and self._headers.get(name) in self._columns.do_columns
            if not _is_sequence(cell):
                return False
            return not may_be_interval or len(cell) != 2 or any(map(_is_sequence, cell))

        return any(is_column(name, cell) for name, cell in columns.items())

    def _type_error(self, source: Any) -> ArgumentError:
        return ArgumentError(
            f"{self._argument} must be a file, a data frame, or a list of mappings from names to numbers; given "
            f"{short_repr(source)}"
        )


def _frame(frame: Any) -> tuple[list[Any], list[Any]] | None:
    """Return names and columns of a data frame or a structured array; None for any other object."""
    if isinstance(frame, np.ndarray):
        if frame.dtype.names is None:
            raise ArgumentError(
                "an array has no names of columns; give a data frame: pl.DataFrame(array, schema=['x', 'y'])"
            )
        return list(frame.dtype.names), [list(frame[name]) for name in frame.dtype.names]
    # A data frame of pandas, which is not imported for this.
    if hasattr(frame, "iloc") and hasattr(frame, "columns"):
        levels = [level for level, name in enumerate(frame.index.names) if name is not None]
        names = [frame.index.names[level] for level in levels] + list(frame.columns)
        index = [frame.index.get_level_values(level).tolist() for level in levels]
        return names, index + [frame.iloc[:, column].tolist() for column in range(frame.shape[1])]
    try:
        if isinstance(frame, pl.LazyFrame):
            frame = frame.head(MAX_ROWS + 1).collect()
        elif hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "__arrow_c_array__"):
            frame = pl.DataFrame(frame)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise ArgumentError(f"the table cannot be read: {str(error).partition(chr(10))[0]}") from error
    if isinstance(frame, pl.DataFrame):
        return frame.columns, [column.to_list() for column in frame.head(MAX_ROWS + 1).iter_columns()]
    return None


def _table_of_columns(names: Sequence[Any], columns: Sequence[Any]) -> Table:
    lengths = {name: len(column) if _is_sequence(column) else None for name, column in zip(names, columns, strict=True)}
    if len(set(lengths.values())) > 1:
        raise ArgumentError(f"all columns must be lists of one length; given {short_repr(lengths)}")
    count = len(columns[0]) if len(columns) else 0
    require_few(count)
    return Table(names, list(zip(*columns, strict=True)), range(1, count + 1))


def _column_name(name: Any, index: int) -> str:
    """Return a column's name as a string; for a tuple, pandas' name with several levels, the only nonempty level."""
    levels = [level for level in (name if isinstance(name, tuple) else [name]) if not _is_missing(level)]
    if len(levels) > 1:
        raise ArgumentError(
            f"column {short_repr(name)} has several levels; give each column one name: frame.columns = ['x', 'y']"
        )
    return " ".join(str(levels[0])[:MAX_NAME].split()) if levels else f"column {index + 1}"


def _plain_name(name: str) -> str:
    """Return a name without differences that programs make: white space, invisible characters, Unicode composition."""
    visible = "".join(letter for letter in name if unicodedata.category(letter) != "Cf")
    return unicodedata.normalize("NFKC", " ".join(visible.split()))


def _is_same_unit(unit: str | None, other: str) -> bool:
    return unit is not None and _plain_unit(unit) == _plain_unit(other)


def _plain_unit(unit: str) -> str:
    return _plain_name(unit).removeprefix("in ").strip("[](),/ ").casefold()


# Cells -------------------------------------------------------------------------------------------------------


def _is_sequence(cell: Any) -> bool:
    return isinstance(cell, Collection) and not isinstance(cell, str | bytes | Mapping) and getattr(cell, "ndim", 1) > 0


def _scalar(cell: Any) -> Any:
    """Convert a scalar of NumPy, or an array without dimensions, to a Python object."""
    if isinstance(cell, np.datetime64 | np.timedelta64):
        return None if np.isnat(cell) else cell
    return scalar_of(cell)


def _is_missing(cell: Any) -> bool:
    cell = _scalar(cell)
    if isinstance(cell, str):
        return _plain_name(cell).casefold() in MISSING
    if isinstance(cell, Decimal):
        return cell.is_nan()
    if isinstance(cell, float | np.floating):
        return math.isnan(cell)
    return cell is None or type(cell).__name__ in ("NAType", "NaTType")


def _is_word(string: str) -> bool:
    is_number = NUMERIC.fullmatch(string) or DECIMAL_POINT.fullmatch(string) or string.casefold() in TRUTH
    return len(string) <= MAX_NUMBER and not is_number


def _first_comma(table: Table, columns: Collection[int]) -> str:
    """Return the first cell that certainly has a decimal comma, with its row, in words; empty if there is none."""
    for index, row in enumerate(table.rows):
        for cell in [row[column] for column in columns if isinstance(row[column], str)]:
            number = _ascii_minus(cell)
            if "," in number and DECIMAL_COMMA.fullmatch(number) and not AMBIGUOUS.fullmatch(number):
                return f"{number!r} in {table.label(index)}"
    return ""


def _ascii_minus(cell: str) -> str:
    return cell.strip().replace("\N{MINUS SIGN}", "-")


def _number(cell: Any, comma: str) -> float | None:
    """Return a cell as a number, None if it is missing.

    Args:
        cell: the cell.
        comma: the cell of the same table that :func:`_first_comma` found; empty if decimals have points.

    Raises:
        ArgumentError: with a message that continues "the value of titre".
    """
    if _is_missing(cell):
        return None
    cell = _scalar(cell)
    if isinstance(cell, str):
        number = _parse(_ascii_minus(cell), comma)
    elif isinstance(cell, Real | Decimal):
        try:
            number = float(cell)
        except OverflowError:
            number = math.inf
    elif isinstance(cell, datetime.date | datetime.time | datetime.timedelta | np.datetime64):
        raise ArgumentError(
            f"must be a number; given {short_repr(str(cell))}, a date or time, into which spreadsheets turn what looks "
            "like one, such as 6.5; format the cell as a number, and enter the value again"
        )
    else:
        raise ArgumentError(f"must be a number; given {short_repr(cell)}")
    if not math.isfinite(number):
        raise ArgumentError(f"must be a finite number; given {short_repr(cell)}")
    return number


def _refuse_sentinels(name: str, numbers: Mapping[str, float]) -> None:
    """Refuse numbers of :data:`SENTINELS` among numbers that are not negative, given label of a row -> number."""
    others = set(numbers.values()) - SENTINELS
    if others and min(others) >= 0.0:
        for label, number in numbers.items():
            if number in SENTINELS:
                raise ArgumentError(
                    f"{label}: the value of {name} is {number:g}, which programs write where nothing was measured; "
                    "leave such cells empty"
                )


def _label(cell: Any, labels: Sequence[str]) -> Any:
    """Return a cell as one of the labels, None if it is missing; the study refuses any other cell."""
    cell = _scalar(cell)
    plain = {_plain_name(label): label for label in labels}
    return plain.get(_plain_name(str(cell)), None if _is_missing(cell) else cell)


def _parse(string: str, comma: str) -> float:
    """Parse a string; errors are those of :func:`_number`."""
    if len(string) > MAX_NUMBER:
        raise ArgumentError(f"must be a finite number; given {short_repr(string)}")
    if DECIMAL_POINT.fullmatch(string) and not (comma and "." in string):
        return float(string)
    if comma and DECIMAL_COMMA.fullmatch(string):
        return float(string.replace(",", "."))
    if string.casefold() in TRUTH:
        return TRUTH[string.casefold()]
    if DECIMAL_POINT.fullmatch(string):
        raise ArgumentError(
            f"has a decimal point, {short_repr(string)}, and there is a decimal comma, {comma}; use one of them"
        )
    if AMBIGUOUS.fullmatch(string):
        large, small = string.replace(",", ""), string.replace(",", ".")
        raise ArgumentError(f"must be a number, and {string!r} may be {large} or {small}; write which of them it is")
    if GROUPED.fullmatch(string):
        raise ArgumentError(f"must be a number without separators between thousands; given {short_repr(string)}")
    if NUMERIC.fullmatch(string) and string.endswith("%"):
        raise ArgumentError(
            f"must be a number in the variable's unit, without a percent sign; given {short_repr(string)}; write it "
            "as the study has it, 0.12 or 12 for 12%"
        )
    if re.fullmatch(ERROR_CELL, string):
        raise ArgumentError(
            f"is {short_repr(string)}, an error of the spreadsheet; correct its formula or widen its column, or leave "
            "the cell empty if it was not measured"
        )
    if string[:1] in {*"<>≤≥"}:
        raise ArgumentError(
            f"must be a number, and {short_repr(string)} is a limit; write the number to use instead, such as the "
            "limit or half of it, or leave the cell empty"
        )
    raise ArgumentError(
        f"must be a finite number; given {short_repr(string)}; leave the cell empty if it was not measured, and delete "
        "the row if it is a note"
    )
