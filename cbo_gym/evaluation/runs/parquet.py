"""How large a Parquet file is once it is read, known before it is.

A file of 11 kB may stand for gigabytes: what repeats is counted, not written, and what is written is compressed. Its
footer says how much it holds, but may lie. The pages cannot: each has a header with the size that its bytes are
unpacked to and the number of its values, by which whoever decodes it goes. So the headers of all pages are read, here
as Apache Parquet's Thrift definition has them (parquet-format 2.10, ``parquet.thrift``, in the compact protocol), and
what they say is added up. Encodings are left to those in which a value takes no more room than its bytes and its
width: of incremental strings (``DELTA_BYTE_ARRAY``) each may be longer than all that is written of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cbo_gym.errors import ArgumentError

MAGIC = b"PAR1"
MOST_COLUMNS = 200  # of a run's file there are 29 at most, of a store's some 50
MOST_ROW_GROUPS = 1000  # Polars puts 262,144 rows into one
MOST_PAGES = 20_000  # Polars puts a MiB into one
DEEPEST = 8  # parts of a header within each other
#: bytes of a value once it is read, by the number of its physical type; a text's are a reference of 16 and the text
WIDTHS = {0: 1, 1: 4, 2: 8, 4: 4, 5: 8, 6: 16}
TEXT = 6
INTEGERS = (4, 5, 6)  # kinds of values in Thrift's compact protocol: of 16, 32 and 64 bits
#: PLAIN, PLAIN_DICTIONARY, RLE, DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, RLE_DICTIONARY, BYTE_STREAM_SPLIT
ENCODINGS = {0, 2, 3, 5, 6, 8, 9}
DATA, INDEX, DICTIONARY, DATA_V2 = range(4)


@dataclass(frozen=True)
class Contents:
    """The contents of a file, as its pages have them.

    Attributes:
        rows: their number.
        values: column -> number of its values, those in lists counted singly.
        bytes: all columns once they are read.
        texts: of them those of texts, each as often as it is written.
        metadata: of the file, by key.
    """

    rows: int
    values: Mapping[str, int]
    bytes: int
    texts: int
    metadata: Mapping[str, str]


def contents(data: bytes) -> Contents:
    """Read footer and page headers of a file, and nothing else of it.

    Raises:
        ArgumentError: if it is not a Parquet file, has more columns, row groups or pages than are read, an encoding or
            a type that we do not write, or contradicts itself.
    """
    try:
        footer = _footer(data)
        columns = _leaves(footer[2])
        groups = footer.get(4, [])
        _at_most("row groups", len(groups), MOST_ROW_GROUPS)
        values, size, texts, pages = dict.fromkeys(columns, 0), 0, 0, 0
        for group in groups:
            _require(len(group[1]) == len(columns), "a row group has other columns than the file")
            for chunk, (name, kind) in zip(group[1], columns.items(), strict=True):
                found = 0
                _require(1 not in chunk and chunk[3][1] == kind, "a column's type is not that of the file")
                for header in _pages(data, chunk[3]):
                    pages += 1
                    _at_most("pages", pages, MOST_PAGES)
                    count, unpacked = _page(header)
                    written = unpacked if kind == TEXT else max(0, unpacked - count * WIDTHS[kind])
                    size += count * WIDTHS[kind] + written
                    texts += unpacked if kind == TEXT else 0
                    found += count if header[1] != DICTIONARY else 0
                _require(found == chunk[3][5], "a column's pages have another number of values than it says")
                _require(group[3] <= found, "a column has fewer values than there are rows")
                values[name] += found
        rows = sum(group[3] for group in groups)
        _require(rows == footer[3], "it has another number of rows than it says")
        metadata = {pair[1].decode(): pair.get(2, b"").decode() for pair in footer.get(5, [])}
        return Contents(rows, values, size, texts, metadata)
    except (IndexError, KeyError, TypeError, AttributeError, UnicodeDecodeError) as error:
        raise ArgumentError("it is not a Parquet file that can be read") from error


def metadata_of(data: bytes) -> dict[str, str]:
    """The metadata of a file by key, of which nothing else is read.

    Raises:
        ArgumentError: if it is not a Parquet file.
    """
    try:
        return {pair[1].decode(): pair.get(2, b"").decode() for pair in _footer(data).get(5, [])}
    except (IndexError, KeyError, TypeError, AttributeError, UnicodeDecodeError) as error:
        raise ArgumentError("it is not a Parquet file that can be read") from error


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ArgumentError(f"it contradicts itself: {otherwise}")


def _at_most(what: str, found: int, most: int) -> None:
    if found > most:
        raise ArgumentError(f"it has {found} {what} or more; at most {most} are read")


def _footer(data: bytes) -> dict[int, Any]:
    size = int.from_bytes(data[-8:-4], "little")
    if len(data) < 12 or data[:4] != MAGIC or data[-4:] != MAGIC or size > len(data) - 12:
        raise ArgumentError("it is not a Parquet file")
    return _struct(data, len(data) - 8 - size)[0]


def _leaves(schema: list[dict[int, Any]]) -> dict[str, int]:
    """The columns that hold values, with the numbers of their types, each by the name of the column of the table."""
    _at_most("parts of its schema", len(schema), 4 * MOST_COLUMNS)
    places = iter(schema)
    found: dict[str, int] = {}

    def below(top: str, depth: int) -> None:
        part = next(places)
        name = top or part[4].decode()
        _require(depth <= DEEPEST, f"the column {name!r} is nested more than {DEEPEST} deep")
        if part.get(5):
            _require(part[5] == 1 or not top, f"the column {name!r} has several parts")
            for _ in range(part[5]):
                below(name, depth + 1)
        else:
            _require(name not in found, f"there are two columns {name!r}")
            if part.get(1) not in WIDTHS:
                raise ArgumentError(f"the column {name!r} is of a type that no result has")
            found[name] = part[1]

    try:
        for _ in range(next(places).get(5, 0)):
            below("", 1)
        _require(next(places, None) is None, "its schema has parts that belong to no column")
    except StopIteration as error:
        raise ArgumentError("it contradicts itself: its schema ends too early") from error
    _at_most("columns", len(found), MOST_COLUMNS)
    return found


def _pages(data: bytes, column: Mapping[int, Any]) -> Iterator[dict[int, Any]]:
    """The headers of a column's pages, one after the other."""
    start = column.get(11, column[9])
    end = start + column[7]
    _require(len(MAGIC) <= start <= column[9] and end <= len(data), "a column lies outside of the file")
    while start < end:
        header, start = _struct(data, start)
        start += header[3]
        _require(header[3] >= 0 and start <= end, "a page lies outside of its column")
        yield header


def _page(header: Mapping[int, Any]) -> tuple[int, int]:
    """The number of a page's values, and of the bytes that it is unpacked to."""
    kind = header[1]
    about = header[{DATA: 5, DICTIONARY: 7, DATA_V2: 8}[kind]]
    encoding = about[4 if kind == DATA_V2 else 2]
    if encoding not in ENCODINGS:
        raise ArgumentError(f"it has values in the encoding {encoding}, which we neither write nor read")
    _require(about[1] >= 0 and header[2] >= 0, "a page has less than nothing")
    return about[1], header[2]


def _struct(data: bytes, place: int, depth: int = 0) -> tuple[dict[int, Any], int]:
    """A struct of Thrift's compact protocol as a dictionary by the numbers of its fields, and the place behind it.

    Every file is read through this before anything else is: it is written to be quick.

    Raises:
        IndexError: if the data end within it.
        ArgumentError: if it has a field twice, or is nested too deep.
    """
    _require(depth <= DEEPEST, f"a header is nested more than {DEEPEST} deep")
    found: dict[int, Any] = {}
    number = 0
    while head := data[place]:
        kind = head & 15
        if head > 15:
            number += head >> 4
            place += 1
        else:
            number, place = _number(data, place + 1)
        _require(number not in found, "a header has a field twice")
        if kind in INTEGERS and (byte := data[place]) < 128:
            found[number] = (byte >> 1) ^ -(byte & 1)
            place += 1
        else:
            found[number], place = _value(data, place, kind, depth)
    return found, place + 1


def _value(data: bytes, place: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in INTEGERS:
        return _number(data, place)
    if kind == 8:
        count, place = _natural(data, place)
        return _bytes(data, place, count)
    if kind == 12:
        return _struct(data, place, depth + 1)
    if kind in (9, 10):
        return _list(data, place, depth + 1)
    if kind in (1, 2):
        return kind == 1, place
    if kind in (3, 7):
        return _bytes(data, place, 1 if kind == 3 else 8)
    raise ArgumentError("it is not a Parquet file that can be read")  # of maps it has none


def _natural(data: bytes, place: int) -> tuple[int, int]:
    found = shift = 0
    while (byte := data[place]) > 127:
        found |= (byte & 127) << shift
        shift += 7
        place += 1
        _require(shift < 64, "a number has more than 64 bits")
    return found | byte << shift, place + 1


def _number(data: bytes, place: int) -> tuple[int, int]:
    found, place = _natural(data, place)
    return (found >> 1) ^ -(found & 1), place


def _bytes(data: bytes, place: int, count: int) -> tuple[bytes, int]:
    if count > len(data) - place:
        raise IndexError
    return data[place : place + count], place + count


def _list(data: bytes, place: int, depth: int) -> tuple[list[Any], int]:
    _require(depth <= DEEPEST, f"a header is nested more than {DEEPEST} deep")
    head, place = data[place], place + 1
    count, kind = head >> 4, head & 15
    if count == 15:
        count, place = _natural(data, place)
    if count > len(data) - place:  # each takes a byte at least
        raise IndexError
    found = []
    for _ in range(count):
        one, place = _bytes(data, place, 1) if kind in (1, 2) else _value(data, place, kind, depth)
        found.append(one)
    return found, place
