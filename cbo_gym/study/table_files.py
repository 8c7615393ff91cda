"""Tables in files: CSV in the encodings and dialects that spreadsheets write, and Excel workbooks.

A file may come from a stranger, so that its size is limited before it is parsed. Cells are not interpreted here, see
:mod:`cbo_gym.study.tables`.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial, reduce
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
# Limits of an unpacked workbook: its size, the XML tags of its sheets, four for each cell, and those of other files.
MAX_UNPACKED_BYTES = 40_000_000
MAX_SHEET_TAGS = 500_000
MAX_OTHER_TAGS = 50_000

SEPARATORS = (",", ";", "\t", "|", " ")
# Byte order marks and their encodings.
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# First bytes of formats that are refused.
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
OTHER_FORMATS = {
    rb"\s*<": "HTML or XML",
    rb"\s*(\{|\[\s*\{)": "JSON",
    rb"%PDF": "PDF",
    rb"PAR1": "Parquet",
}
# A spreadsheet writes "#DIV/0!", "#WERT!" or "#NAME?", in the language of its user, if a formula fails, and "####" if a
# column is too narrow.
ERROR_CELL = r"#(N/?[ADV]|[^\s,;|#]+[!?]|#+)(?=[\s,;|\"]|$)"
# A comment begins with "#".
COMMENT = re.compile(rf"\s*(?!{ERROR_CELL})#", re.I)
ONLY_COMMENTS = "lines that begin with # are comments; put another character before it if they are rounds"
# Largest number of rows above the header.
MAX_TITLE_ROWS = 20
CONTROL_CHARACTER = re.compile(r"[\0-\x08\x0e-\x1f]")


@dataclass(frozen=True)
class Table:
    """Cells of a table, not interpreted yet, and the names of its columns.

    Attributes:
        names: names of the columns.
        rows: cells of each row, as many as there are names.
        numbers: number of each row in messages.
        noun: what stands before this number in messages, such as ``"data.csv: line"``.
        header: the row of the names in messages, such as ``"data.csv: line 1"``; empty for tables in memory.
    """

    names: Sequence[Any]
    rows: Sequence[Sequence[Any]]
    numbers: Sequence[int]
    noun: str = "row"
    header: str = ""

    def label(self, index: int) -> str:
        """Return the name of a row in messages: ``"line 7"``."""
        return f"{self.noun} {self.numbers[index]}"

    def below_title(self, is_name: Callable[[str], bool]) -> Table:
        """Return the table without the rows of a title above the names of its columns, see :func:`read_path`."""
        rows = [self.names, *self.rows[:MAX_TITLE_ROWS]]
        counts = [count_names(row, is_name, is_first=index == 0) for index, row in enumerate(rows)]
        header = counts.index(max(counts))
        if header == 0:
            return self
        labels = [self.header or "the header", *map(self.label, range(header))]
        require_title(dict(zip(labels, counts, strict=False)))
        return replace(
            self, names=rows[header], rows=self.rows[header:], numbers=self.numbers[header:], header=labels[header]
        )


def count_names(cells: Sequence[Any], is_name: Callable[[str], bool], *, is_first: bool) -> int:
    """Return how many cells of a row name a column; 0 if the row is not the first and is unlikely to be a header."""
    filled = [cell for cell in cells[:MAX_COLUMNS] if cell is not None and str(cell).strip()]
    count = sum(isinstance(cell, str) and is_name(cell) for cell in filled)
    return count if is_first or count > 1 or count == len(filled) else 0


def require_title(counts: Mapping[str, int]) -> None:
    """Refuse names of columns above the header, given label of a row -> number of names; the header is last."""
    *above, header = counts
    for label in above:
        if counts[label]:
            raise ArgumentError(
                f"{label} and {header} both have names of variables; delete the rows above the one that is the header"
            )


def read_path(path: Path, is_name: Callable[[str], bool]) -> Table:
    """Read a file.

    Args:
        path: a CSV file, or an Excel workbook.
        is_name: whether a cell is the name of a column; the header and the separator are guessed from these cells.
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
    """Read the content of a file, see :func:`read_path`; each message begins with ``source``."""
    if len(content) > MAX_BYTES:
        raise ArgumentError(f"{source}the file is larger than {MAX_BYTES / 1e6:.0f} MB; divide it into several")
    for magic, compression in COMPRESSED.items():
        if re.match(magic, content):
            raise ArgumentError(f"{source}the content is compressed ({compression}); give the unpacked file")
    for magic, name in OTHER_FORMATS.items():
        if re.match(magic, content.removeprefix(codecs.BOM_UTF8)):
            raise ArgumentError(
                f"{source}the content is {name}, whatever the name of the file; open it in the program that reads it, "
                "and save the table as .xlsx or CSV, or give a data frame"
            )
    if content.startswith(OLD_EXCEL):
        raise ArgumentError(
            f"{source}it is an old Excel file (.xls) or has a password; save it as .xlsx without one, or as CSV"
        )
    if content.startswith(ZIP):
        return _read_workbook(content, is_name, source)
    return _read_csv(_decode(content, source), is_name, source)


# CSV ---------------------------------------------------------------------------------------------------------


def _decode(content: bytes, source: str) -> str:
    """Decode UTF-8, UTF-16 or UTF-32, or else Windows-1252, and convert line ends to those of Unix."""
    encodings = [encoding for mark, encoding in BYTE_ORDER_MARKS if content.startswith(mark)][:1] or ["utf-8", "cp1252"]
    if encodings[0] == "utf-8" and b"\0" in content[:100]:
        encodings = ["utf-16-le" if content[1:2] == b"\0" else "utf-16-be"]
    for encoding in encodings:
        try:
            string = content.decode(encoding).removesuffix("\x1a").replace("\r\n", "\n").replace("\r", "\n")
        except UnicodeDecodeError:
            continue
        if not CONTROL_CHARACTER.search(string):
            return string
    raise ArgumentError(f"{source}the content is not text in UTF-8, UTF-16 or Windows-1252; save it as CSV in UTF-8")


def _read_csv(content: str, is_name: Callable[[str], bool], source: str) -> Table:
    if content.count("\n") > MAX_LINES:
        raise ArgumentError(f"{source}the table has more than {MAX_LINES} lines; divide it into several")
    lines = list(io.StringIO(content))
    separators: Sequence[str] = SEPARATORS
    # Excel writes the separator into the first line.
    if lines and (declared := re.fullmatch(r'"?sep=([^\w\s"]|\t)"?\s*', lines[0], re.I)):
        separators, lines[0] = (declared[1],), "\n"
    comments = _blank_comments(lines)
    if all(line == "\n" for line in lines):
        raise ArgumentError(f"{source}there are no rows of data; {ONLY_COMMENTS if comments else 'the file is empty'}")
    separator = _find_header(lines, comments, separators, is_name, source)
    _require_small(lines, separator, source)
    (line, names), *body = _records(lines, separator, source)
    rows = []
    for number, cells in body:
        if len(cells) < len(names):
            raise ArgumentError(
                f"{source}line {number} has {len(cells)} of the {len(names)} cells that the header in line {line} has, "
                f"divided by {separator!r}; write a separator for each cell, also for an empty one; if the line is a "
                "note, delete it, or begin it with #"
            )
        if any(map(str.strip, cells[len(names) :])):
            comma = "; write decimals with a point, or put ';' between cells" if separator == "," else ""
            raise ArgumentError(
                f"{source}line {number} has {len(cells)} cells, and the header in line {line} has {len(names)}, "
                f"divided by {separator!r}; put quotation marks around a cell that has this character{comma}"
            )
        rows.append(cells[: len(names)])
    if comments and not rows:
        raise ArgumentError(f"{source}line {line}: there are no rows of data; {ONLY_COMMENTS}")
    return Table(names, rows, [number for number, _ in body], f"{source}line", f"{source}line {line}")


def _find_header(
    lines: list[str],
    comments: Mapping[int, str],
    separators: Sequence[str],
    is_name: Callable[[str], bool],
    source: str,
) -> str:
    """Find the header, replace the title above it by empty lines, and return the separator of cells."""
    filled = [number for number, line in enumerate(lines) if line != "\n"]
    # NumPy writes the header as a comment, and a name may begin like one.
    comment = comments.get(filled[0] - 1, "")
    commented = [comment.strip().removeprefix("#"), comment] if comment else []
    # Number and content of each line that may be the header.
    headers = [(filled[0], lines[filled[0]]), *((filled[0] - 1, line) for line in commented)]
    headers += [(number, lines[number]) for number in filled[1:MAX_TITLE_ROWS]]

    def cells_of(number: int, line: str, separator: str) -> list[str]:
        with suppress(csv.Error, StopIteration):
            # A quoted cell may have several lines.
            return next(_reader([line, *lines[number + 1 : number + 10]], separator))
        return []

    def names_in(number: int, line: str, separator: str) -> int:
        return count_names(cells_of(number, line, separator), is_name, is_first=number <= filled[0])

    def score(header: tuple[int, str], separator: str) -> tuple[int, int, bool, int]:
        """Prefer many names, then early lines, then separators other than blanks, then many cells."""
        cells = cells_of(*header, separator)
        return names_in(*header, separator), -headers.index(header), separator != " ", len(cells)

    (header, line), separator = max(product(headers, separators), key=lambda pair: score(*pair))
    title = [number for number in filled if number < header]
    counts = {f"{source}line {number + 1}": names_in(number, lines[number], separator) for number in title}
    require_title({**counts, f"{source}line {header + 1}": 0})
    for number in title:
        lines[number] = "\n"
    lines[header] = line
    return separator


def _blank_comments(lines: list[str]) -> dict[int, str]:
    """Replace comments and lines of separators by empty lines; return number -> line of the comments."""
    comments, is_quoted = dict[int, str](), False
    for number, line in enumerate(lines):
        if not is_quoted and COMMENT.match(line):
            comments[number] = line
            lines[number] = "\n"
        elif not is_quoted and not line.strip('\ufeff ,;|"\t\n'):
            lines[number] = "\n"
        elif line.count('"') % 2:
            is_quoted = not is_quoted
    return comments


def _reader(lines: Sequence[str], separator: str) -> Any:
    stripped = (line.strip(" ") for line in lines) if separator == " " else lines
    return csv.reader(stripped, delimiter=separator, skipinitialspace=True, strict=True)


def _require_small(lines: Sequence[str], separator: str, source: str) -> None:
    """Limit rows, columns and cells before they are parsed."""
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


def _read_workbook(content: bytes, is_name: Callable[[str], bool], source: str) -> Table:
    """Read the sheet of a workbook that has names of variables."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _require_workbook(archive, source)
            with naming_the_extra("An Excel file"):
                import openpyxl
            with warnings.catch_warnings():
                # openpyxl warns of content that it does not know, such as charts, which is not part of the table.
                warnings.simplefilter("ignore")
                return _choose_sheet(openpyxl.load_workbook, content, is_name, source)
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
    if "content.xml" in archive.namelist():
        raise ArgumentError(f"{source}it is an OpenDocument file (.ods); save the table as .xlsx or CSV")
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
    sheet_tags = other_tags = 0
    for member in archive.infolist():
        xml = archive.read(member).replace(b"\0", b"")
        if b"<!DOCTYPE" in xml:
            raise ArgumentError(f"{source}the workbook declares entities, which no spreadsheet does; save it as CSV")
        if member.filename.startswith(("xl/worksheets/", "xl/sharedStrings")):
            sheet_tags += xml.count(b"<")
        else:
            other_tags += xml.count(b"<")
    if sheet_tags > MAX_SHEET_TAGS or other_tags > MAX_OTHER_TAGS:
        raise ArgumentError(f"{source}the workbook has too many cells or styles; save the table alone, or as CSV")


def _choose_sheet(load: Callable[..., Any], content: bytes, is_name: Callable[[str], bool], source: str) -> Table:
    """Read the visible sheet whose table names columns of the study, else the first that is not empty."""
    book = load(io.BytesIO(content), read_only=True, data_only=True)

    def formulas_of(title: str) -> Any:
        return load(io.BytesIO(content), read_only=True)[title]

    visible = [sheet.title for sheet in book.worksheets if sheet.sheet_state == "visible"]
    tables = []
    for index, title in enumerate(visible):
        noun = f"{source}sheet {short_repr(title)}, row"
        table = _read_sheet(book[title], partial(formulas_of, title), noun)
        if table is None:
            continue
        table = table.below_title(is_name)
        if count_names(table.names, is_name, is_first=True):
            others = [other for other in visible[index + 1 :] if _has_header(book[other], is_name)]
            if others:
                raise ArgumentError(
                    f"{source}the sheets {short_repr([title, *others])} have names of variables, and only one sheet is "
                    "read; hide the others and import again, for each of them in turn"
                )
            _require_visible(book[title], table)
            return table
        tables.append(table)
    if not tables:
        raise ArgumentError(f"{source}there are no rows of data; the visible sheets {short_repr(visible)} are empty")
    return tables[0]


def _has_header(sheet: Any, is_name: Callable[[str], bool]) -> bool:
    """Return whether one of the first rows of a sheet names several columns of the study."""
    sheet.reset_dimensions()
    rows = islice(sheet.iter_rows(values_only=True), MAX_TITLE_ROWS)
    return any(count_names(row, is_name, is_first=False) > 1 for row in rows)


def _require_visible(sheet: Any, table: Table) -> None:
    """Refuse hidden rows of data, of which the user may not know that they are read."""
    with sheet._get_source() as file:
        rows = re.findall(rb"<(?:\w+:)?row\b[^>]*>", file.read())
    hidden = {
        int(position[1])
        for row in rows
        if re.search(rb'\bhidden="(1|true)"', row) and (position := re.search(rb'\br="(\d{1,7})"', row))
    }
    for index, number in enumerate(table.numbers):
        if number in hidden:
            raise ArgumentError(
                f"{table.label(index)} is hidden, as by a filter, and would be read; show all rows, or copy the "
                "visible ones to another workbook"
            )


def _read_sheet(sheet: Any, load_formulas: Callable[[], Any], noun: str) -> Table | None:
    """Read a sheet, whose first row that is not blank is the header; None for an empty sheet."""
    # Ignore the size that the sheet states, because some programs write a wrong one.
    sheet.reset_dimensions()
    # Number of a row -> its cells.
    filled, count = dict[int, list[Any]](), 0
    for number, row in enumerate(islice(sheet.iter_rows(values_only=True), MAX_LINES), start=1):
        cells = [cell for cell in row if cell is not None and str(cell).strip()]
        if cells and not (len(cells) == 1 and COMMENT.match(str(cells[0]))):
            filled[number] = list(row)
            count += len(row)
            require_few(len(filled) - 1, count, f"{noun} {number}: ")
            if len(row) > MAX_COLUMNS:
                raise ArgumentError(f"{noun} {number} has {len(row)} cells; at most {MAX_COLUMNS} are read")
    if not filled:
        return None
    width = max(map(len, filled.values()))
    for row in filled.values():
        row += [None] * (width - len(row))
    if any(None in row for row in filled.values()):
        formulas = load_formulas()
        formulas.reset_dimensions()
        _require_calculated(islice(formulas.iter_rows(), MAX_LINES), filled, noun)
        _fill_merged(sheet, filled)
    (first, names), *body = filled.items()
    return Table(names, [row for _, row in body], [number for number, _ in body], noun, f"{noun} {first}")


def _fill_merged(sheet: Any, rows: Mapping[int, list[Any]]) -> None:
    """Copy the value of merged cells, which only the first of them has, to all of their rows."""
    # openpyxl leaves out merged cells if it reads a sheet row by row, so read them from the XML.
    with sheet._get_source() as file:
        merged = re.findall(rb'<(?:\w+:)?mergeCell\b[^>]*\bref="([A-Z]{1,3})(\d{1,7}):[A-Z]+(\d{1,7})"', file.read())
    copies = 0
    for letters, *ends in merged:
        # Columns are A to Z, AA to ZZ and so on.
        column = reduce(lambda number, letter: 26 * number + letter - 64, letters, 0) - 1
        first, last = int(ends[0]), min(int(ends[1]), max(rows))
        copies += last - first
        # A valid sheet has each cell in one merged range, so that there are few copies.
        if first not in rows or column >= len(rows[first]) or copies > MAX_CELLS:
            continue
        for number in range(first + 1, last + 1):
            if number in rows:
                rows[number][column] = rows[first][column]


def _require_calculated(formulas: Iterator[Any], values: Mapping[int, Sequence[Any]], noun: str) -> None:
    """Refuse formulas without a value, which would be read as empty cells."""
    for number, row in enumerate(formulas, start=1):
        for column, cell in enumerate(row):
            if cell.data_type == "f" and number in values and values[number][column] is None:
                raise ArgumentError(
                    f"{noun} {number}: the formula in {cell.coordinate} has no value; open the workbook in a "
                    "spreadsheet program and save it there"
                )
