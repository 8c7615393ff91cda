"""Content of a table's file: CSV in the encodings and dialects that spreadsheets write, and Excel workbooks."""

from __future__ import annotations

import codecs
import csv
import io
import re
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from typing import Any

from cbo_gym.errors import ArgumentError, message_of, naming_the_extra, printable, short_repr, shorten

MAX_BYTES = 20_000_000
# Rows of a sheet of Excel, the blank ones included.
MAX_LINES = 1_048_576
MAX_ROWS = 50_000
MAX_COLUMNS = 1_000
MAX_CELLS = 2_000_000
# Limits of an unpacked workbook: its size, the tags of its sheets, four for each cell, and those of its other files.
MAX_UNPACKED_BYTES = 40_000_000
MAX_SHEET_TAGS = 500_000
MAX_OTHER_TAGS = 50_000

SEPARATORS = (",", ";", "\t", "|", " ")
MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
COMPRESSED = {
    rb"\x1f\x8b": "gzip",
    rb"\x1f\x9d": "compress",
    rb"BZh[1-9]1AY&SY": "bzip2",
    rb"\xfd7zXZ\x00": "xz",
    rb"\x28\xb5\x2f\xfd": "zstd",
    rb"\x04\x22\x4d\x18": "lz4",
    rb"7z\xbc\xaf\x27\x1c": "7z",
    rb"Rar!\x1a\x07": "RAR",
}
ZIP = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
OLD_EXCEL = b"\xd0\xcf\x11\xe0"
# A comment begins with "#", but "#N/A" is a cell of a spreadsheet.
COMMENT = re.compile(r"\s*#(?!(N/A|NA|REF|VALUE|DIV/0|NAME|NUM|NULL)\b)", re.I)
CONTROL = re.compile(r"[\0-\x08\x0e-\x1f]")


@dataclass(frozen=True)
class Table:
    """Cells as they were passed, below the names of their columns.

    Attributes:
        names: Names of the columns.
        rows: Cells of each row, as many as there are names.
        numbers: Number of each row, by which a message names it.
        noun: Noun before that number, after the path of a file.
        header: Position of the header in a file; empty for tables in memory.
    """

    names: Sequence[Any]
    rows: Sequence[Sequence[Any]]
    numbers: Sequence[int]
    noun: str = "row"
    header: str = ""

    def label(self, index: int) -> str:
        """Return the name of a row in messages: ``"line 7"``."""
        return f"{self.noun} {self.numbers[index]}"


def read_path(path: Path, is_name: Callable[[str], bool]) -> Table:
    """Read a file.

    Args:
        path: CSV, or an Excel workbook.
        is_name: Whether a cell is the name of a column; the separator is guessed from these cells.

    Raises:
        ArgumentError: naming the file and the line.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ArgumentError(
            f"cannot read {shorten(printable(str(path)))}: {reason}; give a CSV or Excel file"
        ) from error
    return read_content(content, is_name, f"{path}: ")


def read_content(content: bytes, is_name: Callable[[str], bool], source: str = "") -> Table:
    """Read the content of a file.

    Args:
        content: the bytes of a CSV or Excel file.
        is_name: whether a header cell is the name of a variable.
        source: beginning of each message.

    Raises:
        ArgumentError: as :func:`read_path` does.
    """
    if len(content) > MAX_BYTES:
        raise ArgumentError(f"{source}the file is larger than {MAX_BYTES / 1e6:.0f} MB; divide it into several")
    for magic, compression in COMPRESSED.items():
        if re.match(magic, content):
            raise ArgumentError(f"{source}the content is compressed ({compression}); give the unpacked file")
    if content.startswith(OLD_EXCEL):
        raise ArgumentError(
            f"{source}it is an old Excel file (.xls) or has a password; save it as .xlsx without one, or as CSV"
        )
    if content.startswith(ZIP):
        return _read_workbook(content, source)
    return _read_csv(_decode(content, source), is_name, source)


# CSV ---------------------------------------------------------------------------------------------------------


def _decode(content: bytes, source: str) -> str:
    """Decode UTF-8, UTF-16 or UTF-32, or else Windows-1252, and convert line ends to those of Unix."""
    encodings = [encoding for mark, encoding in MARKS if content.startswith(mark)][:1] or ["utf-8", "cp1252"]
    if encodings[0] == "utf-8" and b"\0" in content[:100]:
        encodings = ["utf-16-le" if content[1:2] == b"\0" else "utf-16-be"]
    for encoding in encodings:
        try:
            string = content.decode(encoding).removesuffix("\x1a").replace("\r\n", "\n").replace("\r", "\n")
        except UnicodeDecodeError:
            continue
        if not CONTROL.search(string):
            return string
    raise ArgumentError(f"{source}the content is not text in UTF-8, UTF-16 or Windows-1252; save it as CSV in UTF-8")


def _read_csv(content: str, is_name: Callable[[str], bool], source: str) -> Table:
    if content.count("\n") > MAX_LINES:
        raise ArgumentError(f"{source}the table has more than {MAX_LINES} lines; divide it into several")
    lines = list(io.StringIO(content))
    separator = None
    if lines and (declared := re.fullmatch(r'"?sep=([^\w\s"]|\t)"?\s*', lines[0], re.I)):
        separator, lines[0] = declared[1], "\n"
    comment = _blank_comments(lines)
    filled = [number for number, line in enumerate(lines) if line != "\n"]
    if not filled:
        raise ArgumentError(f"{source}there are no rows of data; the file is empty")
    first = filled[0]
    # NumPy writes the header as a comment, and a name may begin like one.
    headers = [lines[first], *([comment.strip().removeprefix("#"), comment] if comment else [])]

    def score(header: str, separator: str) -> tuple[int, int, bool, int]:
        cells: list[str] = []
        with suppress(csv.Error, StopIteration):
            cells = next(_reader([header, *lines[first + 1 : first + 10]], separator))
        return sum(map(is_name, cells[:MAX_COLUMNS])), -headers.index(header), separator != " ", len(cells)

    header, separator = max(product(headers, [separator] if separator else SEPARATORS), key=lambda pair: score(*pair))
    if header != lines[first]:
        lines[first - 1] = header
    _require_small(lines, separator, source)
    (line, names), *body = _records(lines, separator, source)
    rows = []
    for number, cells in body:
        if len(cells) < len(names) or any(map(str.strip, cells[len(names) :])):
            comma = "; write decimals with a point, or put ';' between cells" if separator == "," else ""
            raise ArgumentError(
                f"{source}line {number} has {len(cells)} cells, and the header in line {line} has {len(names)}, "
                f"divided by {separator!r}; put quotation marks around a cell that has this character{comma}"
            )
        rows.append(cells[: len(names)])
    return Table(names, rows, [number for number, _ in body], f"{source}line", f"{source}line {line}")


def _blank_comments(lines: list[str]) -> str | None:
    """Replace comments and lines of separators by empty lines; return the comment right above the first other line."""
    above, quoted, begun = None, False, False
    for number, line in enumerate(lines):
        if not quoted and COMMENT.match(line):
            above = above if begun else line
            lines[number] = "\n"
        elif not quoted and not line.strip('\ufeff ,;|"\t\n'):
            above = above if begun else None
            lines[number] = "\n"
        else:
            begun = True
            quoted ^= bool(line.count('"') % 2)
    return above


def _reader(lines: Sequence[str], separator: str) -> Any:
    ends = (line.strip(" ") for line in lines) if separator == " " else lines
    return csv.reader(ends, delimiter=separator, skipinitialspace=True, strict=True)


def _require_small(lines: Sequence[str], separator: str, source: str) -> None:
    """Limit rows, columns and cells before anything is parsed."""
    columns = {number: 1 + line.count(separator) for number, line in enumerate(lines, start=1) if line != "\n"}
    for number, count in columns.items():
        if count > MAX_COLUMNS and separator != " ":
            raise ArgumentError(f"{source}line {number} has {count} cells; at most {MAX_COLUMNS} are read")
    require_few(len(columns) - 1, sum(columns.values()), source)


def require_few(rows: int, cells: int = 0, source: str = "") -> None:
    """Raise ArgumentError for a table that is too large to be of use."""
    for count, limit, noun in ((rows, MAX_ROWS, "rows"), (cells, MAX_CELLS, "cells")):
        if count > limit:
            raise ArgumentError(f"{source}the table has more than {limit} {noun}; divide it into several")


def _records(lines: Sequence[str], separator: str, source: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the first line and the cells of each row that is not blank."""
    reader = _reader(lines, separator)
    while True:
        number = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise ArgumentError(
                f"{source}line {number}: it cannot be divided into cells ({error}); close each quotation mark right "
                "before a separator, or leave them out"
            ) from error
        if any(map(str.strip, cells)):
            yield number, cells


# Excel -------------------------------------------------------------------------------------------------------


def _read_workbook(content: bytes, source: str) -> Table:
    """Read the first sheet of a workbook."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _require_workbook(archive, source)
            with naming_the_extra("An Excel file"):
                import openpyxl
            with warnings.catch_warnings():
                # openpyxl warns of content that it does not know, such as charts, which is not part of the table.
                warnings.simplefilter("ignore")
                return _read_sheet(openpyxl.load_workbook, content, source)
    except (ArgumentError, ImportError):
        raise
    # Neither zipfile nor openpyxl says which errors a damaged file raises.
    except Exception as error:
        raise ArgumentError(
            f"{source}the Excel file cannot be read ({short_repr(message_of(error))}); save it again as .xlsx, or "
            "as CSV"
        ) from error


def _require_workbook(archive: zipfile.ZipFile, source: str) -> None:
    """Limit the size of the archive's content before it is parsed."""
    if "xl/workbook.xml" not in archive.namelist():
        raise ArgumentError(
            f"{source}the content is compressed (zip) and is not an Excel workbook (.xlsx); unpack it, or save the "
            "table as .xlsx or CSV"
        )
    if sum(member.file_size for member in archive.infolist()) > MAX_UNPACKED_BYTES:
        raise ArgumentError(
            f"{source}the workbook has more than {MAX_UNPACKED_BYTES / 1e6:.0f} MB once it is unpacked; save the table "
            "alone, or as CSV"
        )
    tags = Counter[bool]()
    for member in archive.infolist():
        xml = archive.read(member).replace(b"\0", b"")
        if b"<!DOCTYPE" in xml:
            raise ArgumentError(f"{source}the workbook declares entities, which no spreadsheet does; save it as CSV")
        tags[member.filename.startswith(("xl/worksheets/", "xl/sharedStrings"))] += xml.count(b"<")
    if tags[True] > MAX_SHEET_TAGS or tags[False] > MAX_OTHER_TAGS:
        raise ArgumentError(f"{source}the workbook has too many cells or styles; save the table alone, or as CSV")


def _read_sheet(load: Callable[..., Any], content: bytes, source: str) -> Table:
    def rows(data_only: bool) -> tuple[str, Iterator[tuple[Any, ...]]]:
        sheet = load(io.BytesIO(content), read_only=True, data_only=data_only).worksheets[0]
        # Some programs state a size that is wrong.
        sheet.reset_dimensions()
        return sheet.title, islice(sheet.iter_rows(values_only=data_only), MAX_LINES)

    title, cells = rows(data_only=True)
    noun = f"{source}sheet {short_repr(title)}, row"
    filled, count = [], 0
    for number, row in enumerate(cells, start=1):
        if any(cell is not None and str(cell).strip() for cell in row):
            filled.append((number, row))
            count += len(row)
            require_few(len(filled) - 1, count, source)
            if len(row) > MAX_COLUMNS:
                raise ArgumentError(f"{noun} {number} has {len(row)} cells; at most {MAX_COLUMNS} are read")
    if not filled:
        raise ArgumentError(f"{source}there are no rows of data; sheet {short_repr(title)}, the first one, is empty")
    width = max(len(row) for _, row in filled)
    header, *body = [(number, (*row, *[None] * (width - len(row)))) for number, row in filled]
    if any(None in row for _, row in body):
        _require_calculated(rows(data_only=False)[1], dict(body), noun)
    return Table(header[1], [row for _, row in body], [number for number, _ in body], noun, f"{noun} {header[0]}")


def _require_calculated(formulas: Iterator[Any], values: dict[int, tuple[Any, ...]], noun: str) -> None:
    """Refuse formulas without a value, which would be read as empty cells."""
    for number, row in enumerate(formulas, start=1):
        for column, cell in enumerate(row):
            if cell.data_type == "f" and number in values and values[number][column] is None:
                raise ArgumentError(
                    f"{noun} {number}: the formula in {cell.coordinate} has no value; open the workbook in a "
                    "spreadsheet program and save it there"
                )
