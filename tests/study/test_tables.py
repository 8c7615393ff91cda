"""Tables as laboratories have them: read as they are meant, or refused by row and column with a remedy."""

import bz2
import csv
import gzip
import io
import lzma
import sqlite3
import sys
import zipfile
from contextlib import closing
from decimal import Decimal
from fractions import Fraction

import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from cbo_gym._util.files import csv_of
from cbo_gym.cli import app
from cbo_gym.errors import ArgumentError, MissingExtraError
from cbo_gym.study import create_study, load_study
from tests.support.studies import fermenter, simulate
from tests.support.study_visitor import Visitor

# One study reads most tables of this module.
pytestmark = pytest.mark.filterwarnings("ignore:.* rounds equal rounds that the study had already")

SYSTEM = {
    "diagram": "dag { feed -> titre; ph -> titre }",
    "reward": "titre",
    "settable": {"feed": (0, 5), "ph": (5, 8)},
    "units": {"feed": "g/h"},
    "agent": "Random",
}
ROW = (1.5, 6.0, 0.25)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return create_study("plant", storage=tmp_path_factory.mktemp("tables") / "plant.db", **SYSTEM)


def added(study, table, names=("feed", "ph", "titre"), **more):
    """The rounds that a table adds, by the names of some columns."""
    count = study.add_data(table, **more)
    return study.data().tail(count).select(names).rows()


def workbook(*rows, more=lambda book: None):
    book, content = openpyxl.Workbook(), io.BytesIO()
    book.active.title = "Data"
    for row in rows:
        book.active.append(row)
    more(book)
    book.save(content)
    return content.getvalue()


def zipped(content, name="past.csv", beside=b""):
    """A ZIP archive of one file, or a workbook with one part changed."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as new:
        new.writestr(name, content)
        if beside:
            old = zipfile.ZipFile(io.BytesIO(beside))
            for part in set(old.namelist()) - {name}:
                new.writestr(part, old.read(part))
    return archive.getvalue()


def merge(book, cells):
    book.active.merge_cells(cells)


def sheet(book, position, state="visible", row=ROW):
    new = book.create_sheet("Batches", position)
    new.append(NAMES)
    new.append(row)
    new.sheet_state = state
    book.active = book["Data"]


NAMES = ["feed", "ph", "titre"]
HEAD = "feed,ph,titre\n"
SHEET = "xl/worksheets/sheet1.xml"
XML = b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
BOOK = workbook(NAMES, ROW)
READ = {
    "do in capitals": ("feed,ph,titre,DO(feed)\n1.5,6,0.25,1.5\n", [ROW]),
    "plain": (HEAD + "1.5,6,0.25\n", [ROW]),
    "semicolons, decimal commas": ("feed;ph;titre\n1,5;6;0,25\n", [ROW]),
    "three decimals of a decimal comma": ("feed;ph;titre\n1,500;6,125;0,250\n", [(1.5, 6.125, 0.25)]),
    "quoted decimal commas between commas": (HEAD + '"1,5",6,"0,25"\n', [ROW]),
    "tabs": ("feed\tph\ttitre\n1.5\t6\t0.25\n", [ROW]),
    "aligned by blanks": ("feed   ph titre\n 1.5    6  0.25\n", [ROW]),
    "Excel's first line": ("sep=;\nfeed;ph;titre\n1,5;6;0,25\n", [ROW]),
    "UTF-8 with a BOM": ("\ufefffeed,ph,titre\n1.5,6,0.25\n", [ROW]),
    "UTF-16 of Excel": ("feed\tph\ttitre\r\n1,5\t6\t0,25\r\n".encode("utf-16"), [ROW]),
    "UTF-16 without a BOM": ("feed\tph\ttitre\n1,5\t6\t0,25\n".encode("utf-16-le"), [ROW]),
    "Windows-1252": ("# Füttern\nfeed;ph;titre\n1,5;6;0,25\n".encode("cp1252"), [ROW]),
    "CR alone": ("feed,ph,titre\r1.5,6,0.25\r1.5,6,0.25\r", [ROW] * 2),
    "blank lines": ('\n\nfeed,ph,titre\n\n1.5,6,0.25\n,,\n;;\n  \n"","",""\n', [ROW]),
    "comments": ('# of May\n#"\nfeed,ph,titre\n# 5" tube\n1.5,6,0.25\n', [ROW]),
    "NumPy's commented header": ("# feed ph titre\n1.5e+00 6.0e+00 2.5e-01\n", [ROW]),
    "not measured": (
        HEAD + "NA,n.a.,1\n-,#N/A,2\nnan,,3\n#N/A,N/A,4\nNULL,None,5\n\u2013,<NA>,6\n",
        [(None, None, float(number)) for number in range(1, 7)],
    ),
    "units": (HEAD + "[g/h],-,mg/l\n1.5,6,0.25\n", [ROW]),
    "units behind names": ("feed [g/h];ph;titre;do(feed) (G/h)\n1,5;6;0,25;1,5\n", [ROW]),
    "pandas' index": (",feed,ph,titre\n0,1.5,6,0.25\n7,1.5,6,0.25\n", [ROW] * 2),
    "pandas' index, twice": ("Unnamed: 0.1,Unnamed: 0,feed,ph,titre\n0,0,1.5,6,0.25\n", [ROW]),
    "R's row names": ('"","feed","ph","titre"\n"1",1.5,6,0.25\n', [ROW]),
    "separators behind all": ("feed,ph,titre,,\n1.5,6,0.25,,\n1.5,6,0.25,,,\n", [ROW] * 2),
    "the true minus sign": (HEAD + "1.5,6,\u22120.25\n", [(1.5, 6.0, -0.25)]),
    "truth values": (HEAD + "TRUE,6,false\n", [(1.0, 6.0, 0.0)]),
    "an empty column of no variable": ("feed,ph,titre,note,do(titre)\n1.5,6,0.25,,NA\n", [ROW]),
    "whole numbers for 150 rows": (
        HEAD + "1,6,2\n" * 150 + "1.5,6,0.25\n",
        [(1.0, 6.0, 2.0)] * 150 + [ROW],
    ),
    "Excel": (workbook([], NAMES, ["g/h", "-", None], [], ROW, ["1,5", "NA", 2], [" "]), [ROW, (1.5, None, 2.0)]),
    "Excel with an index and several sheets": (
        workbook([None, *NAMES], [0, *ROW], more=lambda book: book.create_sheet("Notes").append(["old"])),
        [ROW],
    ),
    "a title": ("Batches of 2025\n\nfeed,ph,titre\n1.5,6,0.25\n", [ROW]),
    "a title of Excel": ("Batches;;\nAnn;;2025-01-01\n;;\nfeed;ph;titre\n1,5;6;0,25\n", [ROW]),
    "a line break in a title": ('"Batches\nof 2025",,\nfeed,ph,titre\n1.5,6,0.25\n', [ROW]),
    "units in several forms": ('"feed, g/h";do(feed) / g/h;ph;titre\n1,5;1,5;6;0,25\n', [ROW]),
    "invisible characters": ("feed\u200b;\u00adph;titre\n1,5;\u00a06;0,25\n", [ROW]),
    "German #N/A": ("feed;ph;titre\n#NV;6;0,25\n", [(None, 6.0, 0.25)]),
    "a title and groups in Excel": (
        workbook(
            ["Batches"],
            [],
            ["settings", None, "results"],
            NAMES,
            ["# foam"],
            ROW,
            more=lambda book: merge(book, "A3:B3"),
        ),
        [ROW],
    ),
    "merged cells": (
        workbook(NAMES, ROW, [None, 7, 1], [2, 7, 1], more=lambda book: merge(book, "A2:A3")),
        [ROW, (1.5, 7.0, 1.0), (2.0, 7.0, 1.0)],
    ),
    "a hidden sheet": (workbook(NAMES, ROW, more=lambda book: sheet(book, 0, "hidden", [9, 9, 9])), [ROW]),
    "a text stream": (io.StringIO(HEAD + "1.5,6,0.25\n"), [ROW]),
}
REFUSED = {
    "another unit behind a name": (
        "feed (kg/h),titre\n1.5,0.25\n",
        r"line 1: the unit of feed is '\(kg/h\)', and in this study it is 'g/h'; .* --ignore 'feed \(kg/h\)'",
    ),
    "a unit that the study does not state": (
        "feed,titre (sd)\n1.5,1\n",
        r"no variable is called 'titre \(sd\)'; did you mean 'titre'",
    ),
    "empty": ("", "there are no rows of data"),
    "no header": ("1.5,6,0.25\n1,2,3\n", r"line 1: the columns must have the names of variables, \['feed', 'ph'"),
    "a date": (
        "date,feed,ph,titre\n2024-05-01,1.5,6,0.25\n",
        r"line 1: no variable is called 'date'.* --ignore 'date'",
    ),
    "columns of no variable": (
        "batch,feed,ph,titer,by,at\n1,1.5,6,0.25,Ann,\n",
        r"line 1: no variable is called 'batch'.* ignore=\['batch', 'by'\], --ignore 'batch' --ignore 'by', or the f",
    ),
    "a typing error": ("feed,ph,titer\n1.5,6,0.25\n", "line 1: no variable is called 'titer'; did you mean 'titre'"),
    "capitals": ("Feed,pH,titre\n1.5,6,0.25\n", "line 1: no variable is called 'Feed' nor 'pH'; did you mean 'feed'"),
    "a unit in the header": ("feed,ph,titre (g/l)\n1,6,1\n", r"no variable is called 'titre \(g/l\)'; did you mean 't"),
    "no name": (",feed,ph,titre\nMay,1.5,6,0.25\n", "line 1: column 1 has no name.* ignore=.'column 1'"),
    "a name twice": ("feed,ph, feed,titre\n1,6,2,1\n", "line 1: columns 1 and 3 are both 'feed'; rename one"),
    "text": (
        HEAD + "1.5,6,0.25\n1.5,6,high\n",
        "line 3: the value of titre must be .* given 'high'; leave the",
    ),
    "a line break before": ('# x\nfeed,ph,titre\n1,6,"1\n"\n1,6,x\n', "line 5: the value of titre"),
    "underscores": (HEAD + "1.5,6,1_000\n", "line 2: .* without separators between thousands; given '1_000'"),
    "thousands": (HEAD + '1.5,6,"1,234"\n', "line 2: the value of titre .*'1,234' may be 1234 or 1.234; write"),
    "German thousands": ("feed;ph;titre\n1,5;6;1.234,5\n", "separators between thousands; given '1.234,5'"),
    "both decimal marks": ("feed;ph;titre\n1,5;6;2\n1;6;2.5\n", "line 3: .* decimal point, '2.5', .* '1,5' in line 2"),
    "a percentage": (
        HEAD + "1.5,6,12 %\n",
        "line 2: the value of titre .* without a percent sign; given '12 %'",
    ),
    "another unit": (
        HEAD + "kg/h,,\n1,6,1\n",
        "line 2: the unit of feed is 'kg/h', and in this study it is 'g",
    ),
    "no reward": (
        HEAD + "1.5,6,NA\n",
        "line 2: the reward titre is missing, and Random learns nothing without it",
    ),
    "a cell too few": (HEAD + "1.5,6,0.25\n1.5,6\n", "line 3 has 2 of the 3 cells .* in line 1 .* separator for each"),
    "decimal commas between commas": (
        HEAD + "1,5,6,0,25\n",
        "line 2 has 5 cells.* write decimals with a point",
    ),
    "an open quotation mark": (
        HEAD + '1.5,"6,0.25\n',
        "line 2: it cannot be divided into cells.* close each quot",
    ),
    "cannot be set": ("titre,do(titre)\n1,1\n", "line 1: 'titre' cannot be set; the settable names are"),
    "gzip": (gzip.compress(HEAD.encode() + b"1,2,3\n" * 100_000), r"compressed \(gzip\); give the unpacked file"),
    "bzip2": (bz2.compress(b"titre\n1\n", 1), r"compressed \(bzip2\)"),
    "xz": (lzma.compress(b"titre\n1\n"), r"compressed \(xz\)"),
    "zstd": (b"\x28\xb5\x2f\xfd\x04\x00", r"compressed \(zstd\)"),
    "zip": (zipped(b"titre\n1\n"), r"compressed \(zip\)"),
    "neither text nor zip": (b"\x01\x02\x03", "not text in UTF-8, UTF-16 or Windows-1252; save it as CSV"),
    "half a character of UTF-16": (b"\xff\xfet\x00i", "not text in UTF-8"),
    "an old Excel file": (b"\xd0\xcf\x11\xe0" + bytes(600), r"old Excel file \(.xls\)"),
    "a damaged workbook": (BOOK[:-200], "the Excel file cannot be read"),
    "too many rows": ("titre\n" + "1\n" * 50_001, "more than 50000 rows"),
    "too many lines": ("titre\n" + "\n" * 2_000_000, "more than 1048576 lines"),
    "too many cells": ("titre,feed,ph,a,b,c,d,e,f,g" + ",h" * 90 + "\n" + ("1" + "," * 99 + "\n") * 21_000, "cells"),
    "a long number": ("titre\n" + "1" * 100_000 + "x\n", "line 2: the value of titre must be a finite number"),
    "an error of Excel": (workbook(NAMES, ["#DIV/0!", 6, 1]), "row 2: the value of feed is '#DIV/0!', an error of"),
    "a narrow column": (HEAD + "####,6,1\n2,6,1\n", "line 2: the value of feed is '####', .* widen its column"),
    "below a limit": (HEAD + "1.5,6,<0.05\n", "line 2: the value of titre must be .* '<0.05' is a limit; write"),
    "a mean": (HEAD + "1.5,6,0.25\nMean,6,0.25\n", "line 3: 'Mean' in column 'feed' says that the row is a summary"),
    "batches like comments": ("batch,titre\n#1,1\n#2,2\n", "line 1: .* lines that begin with # are comments; put"),
    "two tables": (HEAD[:7] + "\n1,2\n\n" + HEAD + "1,6,1\n", "line 1 and line 4 both have names .* delete the"),
    "on its side": ("feed,1.5,2\nph,6,7\ntitre,0.25,1\n", r"\['feed', 'ph', 'titre'\] are below each other; give"),
    "HTML": (b"\xef\xbb\xbf\n<html><table>", "the content is HTML or XML, .* save the table as .xlsx or CSV"),
    "JSON": ('[{"feed": 1.5, "ph": 6, "titre": 0.25}]', "the content is JSON"),
    "an OpenDocument file": (zipped(b"", "content.xml"), r"OpenDocument file \(.ods\); save the table as .xlsx"),
    "a code for a missing value": (HEAD + "1,6,0.2\n1,6,-999\n", "line 3: the value of titre is -999, which programs"),
    "two sheets of rounds": (
        workbook(NAMES, ROW, more=lambda book: sheet(book, 1)),
        r"the sheets \['Data', 'Batches'\] have names of variables, and only one sheet is read; hide the others",
    ),
    "a filtered row": (
        workbook(NAMES, ROW, ROW, more=lambda book: setattr(book.active.row_dimensions[3], "hidden", True)),
        "sheet 'Data', row 3 is hidden, as by a filter, and would be read; show all rows",
    ),
    "a formula without its value": (workbook(NAMES, [1, "=A2+5", 1]), "row 2: the formula in B2 has no value; open"),
    "a cell far out": (
        workbook(NAMES, ROW, more=lambda book: book.active.cell(9, 16_384, 1)),
        "row 9 has 16384 cells; at most 1000",
    ),
    "a large workbook": (zipped(b" " * 41_000_000, SHEET, BOOK), "more than 40 MB once it is unpacked"),
    "many cells in a workbook": (zipped(XML + b"<row/>" * 600_000, SHEET, BOOK), "too many cells or styles"),
    "entities in a workbook": (zipped(b"<!DOCTYPE a>" + XML, SHEET, BOOK), "declares entities"),
    "a column without end": (
        zipped(XML + b'<row><c r="ZZZZZZZ1"/></row>', SHEET, BOOK),
        "the Excel file cannot be read",
    ),
}


def content_of(table):
    return table.encode() if isinstance(table, str) else table


@pytest.mark.parametrize(("table", "rounds"), READ.values(), ids=READ)
def test_a_file_is_read_as_it_is_meant(study, table, rounds):
    assert added(study, content_of(table)) == rounds


def test_columns_are_left_out_by_choice(study):
    table = b'date,feed,note,ph,note,titre\n2024-05-01,1.5,"a, b",6,x,0.25\n'
    assert added(study, table, ignore=["date", "note"]) == [ROW]
    assert added(study, (HEAD + "1.5,bad,0.25\n").encode(), ignore="ph") == [(1.5, None, 0.25)]
    with pytest.raises(ArgumentError, match="line 1: there is no column 'dat' to ignore; did you mean 'date'"):
        study.add_data(table, ignore=["dat", "note"])
    with pytest.raises(ArgumentError, match="ignore must be a list of names of columns; given 3"):
        study.add_data(table, ignore=3)
    for label in ("Total", "summe:"):
        with pytest.raises(ArgumentError, match=f"line 3: '{label}' in column 'date' says that the row is a summary"):
            study.add_data(b"date,feed,ph,titre\n1 May,1.5,6,0.25\n" + f"{label},1.5,6,0.25\n".encode(), ignore="date")


def test_rounds_that_are_added_twice_are_counted(tmp_path):
    study = fermenter(tmp_path / "f.db", agent="Random")
    rows = [simulate({}), simulate({"ph": 6.7})]
    study.add_data(rows, do=[{}, {"ph": 6.7}])
    trial = study.register({"feed": 1.0})
    study.tell(trial, simulate({"feed": 1.0}))
    with pytest.warns(UserWarning, match="3 of 4 rounds equal rounds that the study had already"):
        study.add_data(pl.concat([study.data(), study.data().tail(1).with_columns(ph=pl.lit(6.9))]))
    other = fermenter(tmp_path / "g.db", agent="Random")
    assert other.add_data(study.data().unique(maintain_order=True)) == 4


FRAME = pd.DataFrame([ROW, ROW], columns=NAMES)
FRAMES = {
    "pandas": FRAME,
    "pandas, strings": FRAME.astype(str),
    "pandas, categories": FRAME.astype("category"),
    "pandas, nullable": FRAME.convert_dtypes(),
    "pandas, a named index": FRAME.set_index("feed"),
    "pandas, an index of several": FRAME.set_index(["feed", "ph"]),
    "pandas, columns of several levels": FRAME.set_axis(pd.MultiIndex.from_product([NAMES, [""]]), axis=1),
    "pandas, rows": [row for _, row in FRAME.iterrows()],
    "Polars": pl.DataFrame(FRAME.to_dict("list")),
    "Polars, lazy": pl.LazyFrame(FRAME.to_dict("list")),
    "pyarrow, a table": pa.table(FRAME.to_dict("list")),
    "pyarrow, a batch": pa.record_batch(FRAME.to_dict("list")),
    "a dict of columns": FRAME.to_dict("list"),
    "a dict of arrays and series": {"feed": np.full(2, 1.5), "ph": pl.Series([6, 6]), "titre": (0.25, 0.25)},
    "a generator": (dict(zip(NAMES, ROW, strict=True)) for _ in range(2)),
    "DictReader": csv.DictReader(["feed,ph,titre", "1.5,6,0.25", "1.5,6,0.25"]),
    "a structured array": np.array([ROW, ROW], dtype=[(name, float) for name in NAMES]),
    "numbers of all kinds": [
        {"feed": Decimal("1.5"), "ph": np.int8(6), "titre": np.array(0.25)},
        {"feed": np.float32(1.5), "ph": "6", "titre": " +0.25"},
    ],
}
REFUSED_FRAMES = {
    "empty": (pd.DataFrame(), "there are no rows of data"),
    "nothing": (None, "data must be a file, a data frame, or a list of mappings"),
    "integer columns": (
        FRAME.set_axis([0, 1, 2], axis=1),
        r"columns must have the names of variables.* \['0', '1', '2'\]",
    ),
    "columns of several levels": (
        FRAME.set_axis(pd.MultiIndex.from_product([NAMES, ["g"]]), axis=1),
        r"column \('feed', 'g'\) has several levels; give each column one name",
    ),
    "two columns of one name": (FRAME.set_axis(["feed", "feed", "titre"], axis=1), "columns 1 and 2 are both 'feed'"),
    "a named index of no variable": (FRAME.rename_axis("batch"), "row 1: no variable is called 'batch'.* ignore="),
    "a date": (
        FRAME.assign(ph=pd.Timestamp("2024-05-01")),
        "row 1: the value of ph must be a number; given '2024-05-01 ",
    ),
    "an unknown column": (
        [{"titre": 1}, {"titre": 1, "fed": 2}],
        "row 2: no variable is called 'fed'; did you mean 'feed'.* ignore=.'fed'",
    ),
    "another key": ([{"titre": 1, 3: 2}], "row 1: no variable is called '3'"),
    "a number too large": ([{"titre": 10**400}], "row 1: the value of titre must be a finite number"),
    "complex": ([{"titre": 1j}], "row 1: the value of titre must be a number; given 1j"),
    "a list in a cell": ([{"titre": 1, "ph": [1, 2]}], "row 1: the value of ph must be a number"),
    "NaT only": ([{"titre": pd.NaT}], "row 1: nothing was measured"),
    "a number among columns": ({"titre": [1, 2], "ph": 6}, "columns must be lists of one length"),
    "an array": (np.ones((2, 3)), "an array has no names of columns; give a data frame"),
    "rows of lists": ([[1, 2, 3]], "data must be a file, a data frame"),
    "a lazy frame that fails": (pl.LazyFrame({"a": [1]}).select("titre"), 'cannot be read: .*"titre"'),
    "rows without end": (({"titre": 1} for _ in iter(int, 1)), "more than 50000 rows"),
}


@pytest.mark.parametrize(
    ("table", "message"), [*REFUSED.values(), *REFUSED_FRAMES.values()], ids=[*REFUSED, *REFUSED_FRAMES]
)
def test_a_table_is_refused_by_row_and_column(study, table, message):
    before = study.events
    with pytest.raises(ArgumentError, match=message):
        study.add_data(content_of(table))
    assert study.events == before


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_a_table_in_memory_is_read(study, frame):
    assert added(study, frame) == [ROW, ROW]


def test_missing_values_of_every_library_are_missing(study):
    nothing = [None, np.nan, pd.NA, pd.NaT, Decimal("NaN"), np.datetime64("NaT", "s"), np.float32("nan"), "", "NA"]
    assert added(study, [{"feed": cell, "titre": 1} for cell in nothing]) == [(None, None, 1.0)] * len(nothing)
    assert added(study, pd.DataFrame({"feed": pd.array([1, None], "Int64"), "titre": [True, False]})) == [
        (1.0, None, 1.0),
        (None, None, 0.0),
    ]


def test_a_row_of_a_database_is_a_row(study):
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.row_factory = sqlite3.Row
        assert added(study, connection.execute("SELECT 1.5 AS feed, 6 AS ph, 0.25 AS titre")) == [ROW]
    assert added(study, FRAME.iloc[0]) == [ROW]
    exact = {"feed": Decimal("1.5"), "ph": np.array(6), "titre": Fraction(1, 4)}
    for values in (FRAME.iloc[0], [row for _, row in FRAME.iterrows()], next(FRAME.itertuples(index=False)), exact):
        study.tell(study.register(pd.Series({"ph": np.int64(6)})), values)
        assert study.data().tail(1).select("do(ph)", *NAMES).rows() == [(6.0, *ROW)]
    study.tell(study.ask(), pd.Series({"ph": np.nan, "titre": 1.0}), std=pd.Series({"titre": 0.1}), did=pd.Series())
    assert study.data()["std(titre)"].to_list()[-1] == 0.1


def test_what_was_set_may_have_columns_or_a_table_of_its_own_or_be_said_for_all(study):
    table = b"feed;ph;titre;do(feed); do( ph )\n1,5;6;0,25;1,5;\n;6;1;;6,5\n"
    assert added(study, table, ("do(feed)", "do(ph)", "feed")) == [(1.5, None, 1.5), (None, 6.5, None)]
    for do in (
        [{"ph": 6}, {}],
        [{"ph": "6"}, {"ph": None}],
        {"ph": [6, None]},
        b"feed,ph\n,6\nNA,NA\n",
        pl.DataFrame({"ph": [6, None]}),
        pl.LazyFrame({"do(ph)": [6, None]}),
        pd.DataFrame({"ph": pd.array([6, None], "Int64")}),
    ):
        assert added(study, FRAME, ("do(feed)", "do(ph)"), do=do) == [(None, 6.0), (None, None)]
    frame = FRAME.assign(**{"do(feed)": [1.5, None], "do(ph)": [6, 6]})
    for do in ({"ph": 6}, pd.Series({"ph": 6.0})):
        assert added(study, frame, ("do(feed)", "do(ph)"), do=do) == [(1.5, 6.0), (None, 6.0)]


@pytest.mark.parametrize(
    ("do", "message"),
    [
        ([{"ph": 6}], "do has 1 rows for 2 rows of data"),
        (pl.DataFrame({"ph": [6, 6, 6]}), "do has 3 rows for 2 rows of data"),
        ({"ph": [6, 6, 6]}, "do has 3 rows for 2 rows of data"),
        (pl.DataFrame({"pH": [6, 6]}), "do, row 1: 'pH' cannot be set; did you mean 'ph'"),
        ([{"ph": 6}, {"ph": "x"}], r"do, row 2: the value of do\(ph\) must be a finite number; given 'x'"),
        ({"feed": 2}, r"row 2: the column do\(feed\) says 1.5 and the argument do says 2.0; give one of them"),
        (3, "do must be a file, a data frame"),
    ],
)
def test_what_was_set_is_refused_by_row_and_name(study, do, message):
    table = FRAME.assign(**{"do(feed)": [None, 1.5]})
    with pytest.raises(ArgumentError, match=message):
        study.add_data(table, do=do)


def test_one_reader_for_python_the_command_line_and_the_page(tmp_path):
    database, past = tmp_path / "plant.db", tmp_path / "past.csv"
    study = create_study("plant", storage=database, **SYSTEM)
    past.write_bytes("date;feed;ph;titre\n1.5.24;1,5;6;0,25\n".encode("utf-16"))
    study.add_data(past, ignore="date")
    study.add_data(str(past), ignore="date")
    command = ["study", "import", str(database), str(past)]
    refused = CliRunner().invoke(app, command)
    assert refused.exit_code == 2
    assert f"{past}: line 1: no variable is called 'date'" in refused.output.replace("\n", "")
    assert "1 round was added" in CliRunner().invoke(app, [*command, "--ignore", "date"]).stdout
    visitor = Visitor(database)
    visitor.get("/studies/1")
    visitor.send("import", {}, 422, {"file": ("past.csv", past.read_bytes())})
    assert "line 1: no variable is called &#39;date&#39;" in visitor.html
    visitor.send("import", {"ignore": "date\n"}, files={"file": ("past.csv", past.read_bytes())})
    visitor.send("import", {"ignore": "date\nnote", "csv": "\tfeed\tph\ttitre\tdate\tnote\n0\t1,5\t6\t0,25\t\t\n"})
    visitor.send("import", files={"file": ("past.xlsx", workbook(NAMES, ROW))})
    visitor.send("import", {}, 422, {"file": ("past.csv", gzip.compress(b"titre\n1\n"))})
    assert study.data().select(NAMES).rows() == [ROW] * 6
    with pytest.raises(ArgumentError, match=r"cannot read .*nowhere\.csv: No such file"):
        study.add_data(tmp_path / "nowhere.csv")
    with pytest.raises(ArgumentError, match=r"cannot read .*: Is a directory"):
        study.add_data(tmp_path)


def test_without_openpyxl_the_extra_is_named(study, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[excel\]'"):
        study.add_data(BOOK)


def test_a_large_import_is_several_events_or_none(tmp_path, monkeypatch):
    monkeypatch.setattr("cbo_gym.study.past_rounds.MAX_PAYLOAD", 10_000)
    study = create_study("plant", storage=tmp_path / "plant.db", **SYSTEM)
    rows = "".join(f"{index % 5},6,{index / 7}\n" for index in range(120))
    with pytest.raises(ArgumentError, match="line 122: the value of titre"):
        study.add_data(f"{HEAD}{rows}1,6,x\n".encode())
    assert study.events == 0
    assert study.add_data(f"{HEAD}{rows}".encode()) == 120
    assert study.events == 2
    assert load_study(storage=tmp_path / "plant.db").data()["titre"].to_list() == [index / 7 for index in range(120)]


NASTY = ["#1", "=x", "+a b", "@b", "DO (mg/l)", "a,b", 'c"d', "\u00b5", "a\nb", "y"]


def test_an_export_can_be_imported_again(tmp_path):
    about = {
        "variables": NASTY,
        "reward": "y",
        "settable": dict.fromkeys(("=x", "+a b", "a\nb"), (-9, 9)),
        "targets": [["=x"], ["+a b"], ["a\nb"], []],
        "agent": "Random",
    }
    old = create_study("old", storage=tmp_path / "a.db", **about)
    old.add_data([dict.fromkeys(NASTY, float(index)) for index in range(150)])
    old.add_data([dict.fromkeys(NASTY, -1 / 3) | {"@b": None}], do={"=x": 1e-7})
    old.add_data([{"y": 1}], do={"a\nb": -2})
    string = csv_of(old.data())
    header = next(csv.reader(io.StringIO(string)))
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in header)
    new = create_study("new", storage=tmp_path / "b.db", **about)
    with_notes = csv_of(old.data().with_columns(note=pl.lit('=1+1, "x"')))
    by_name = csv_of(old.data().select(sorted(old.data().columns)))
    for table in (string, by_name, with_notes, string.replace("\n", "\r\n").encode("utf-16")):
        assert new.add_data(content_of(table), ignore="note" if table is with_notes else ()) == 152
        assert new.data().tail(152).equals(old.data())


def test_intervals_can_be_exported_and_imported(tmp_path):
    about = {
        "diagram": "dag { a -> y }",
        "reward": "y",
        "mode": "aggregated",
        "parameters": {"p": {"node": "a", "bounds": (0, 1)}, "q": {"node": "y", "bounds": (0, 1)}},
        "agent": "Random",
    }
    old = create_study("old", storage=tmp_path / "a.db", **about)
    old.add_data({"a": [1, 2], "y": [3, 4], "do(p)": [[0, 0.5], [0.1, 0.2]], "do(q)": [(0, 1), np.array([0.5, 0.7])]})
    old.add_data({"a": 1, "y": 2}, do={"p": (0.25, 0.5), "q": "[0, 1]"})
    new = create_study("new", storage=tmp_path / "b.db", **about)
    assert new.add_data(csv_of(old.data()).encode()) == 3
    assert new.data().equals(old.data())
    assert new.data()["do(p)"].to_list() == [[0, 0.5], [0.1, 0.2], [0.25, 0.5]]
    for cell in (0.5, "0.5", [0.5], [0, 1, 2], [0, None], "[0; 1]"):
        with pytest.raises(ArgumentError, match=r"row 1: the value of do\(p\) must be an interval"):
            new.add_data([{"y": 1, "do(p)": cell, "do(q)": [0, 1]}])


def test_contexts_are_read_from_tables(tmp_path):
    about = {
        "diagram": "dag { age -> dose -> health; age -> health }",
        "reward": "health",
        "mode": "contextual",
        "settable": {"dose": (0, 10)},
        "contexts": ["age"],
        "agent": "Random",
    }
    study = create_study("s", storage=tmp_path / "a.db", **about)
    assert study.add_data(b"age;dose;health\n62;1,5;0,5\n") == 1
    for context in ({"age": np.int64(62)}, pd.Series({"age": 62})):
        assert study.ask(context=context).context == {"age": 62.0}
    with pytest.raises(ArgumentError, match="line 3: the context age must be a finite number; given None"):
        study.add_data(b"age;dose;health\n62;1,5;0,5\n;1,5;0,5\n")
