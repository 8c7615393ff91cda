"""Labels, errors and names in a results file that try to be code: each output shows them, and none carries them out."""

import csv
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO

import pytest
from typer.testing import CliRunner

from cbo_gym import evaluate, leaderboard
from cbo_gym._util.files import FORMULA_STARTS
from cbo_gym.cli import app
from cbo_gym.evaluation import publish
from cbo_gym.evaluation.report.page import write_report
from cbo_gym.evaluation.runs.results import name_of, save_run

pytestmark = pytest.mark.slow

LABELS = {
    "script": "<script>alert(1)</script>",
    "end of a script": "</script><img src=x onerror=alert(1)>",
    "attribute": "\" onmouseover='alert(1)' x=\"",
    "comment": "<!-- results: end -->",
    "template": "{{ 7*7 }}{% for x in y %}",
    "latex": "\\input{/etc/passwd}",
    "special in latex": "a&b%c#d^e~f_g}h",
    "pipe": "a|b|c",
    "link": "[click](javascript:alert(1))",
    "rich": "[red]x[/red][link=http://example.com]y[/link]",
    "spreadsheet": "=cmd()",
    "spreadsheet, at": "@SUM(1+1)*cmd|' /C calc'!A0",
    "colour": "\x1b[31mred\x1b]0;title\x07",
    "null": "a\x00b",
    "from the right": "abc\u202e\u2066cba",
    "lines": "first\nsecond\r\nthird\u2028fourth",
    "wide": "因果\U0001f600",
    "long": "x" * 10_000,
    "path": "../../../../etc/passwd",
}
EVERY = list(LABELS.values())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Runs whose texts are hostile, each in its turn: agents, environments, errors, machines, packages, choices."""
    folder = tmp_path_factory.mktemp("hostile") / "runs"
    soft, hard = (evaluate("Random", env, 0, horizon=2) for env in ("CBO/Dropwave-v0", "CBO/ToyGraph-v0"))
    runs = [soft, replace(soft, seed=1), replace(hard, choices=tuple(EVERY[: len(hard.choices)]))]
    for number, content in enumerate(EVERY):
        runs += [replace(soft, agent=content, seed=seed) for seed in (0, 1)]
        runs.append(replace(soft, env=content))
        runs.append(replace(soft, agent=f"A{number}", status="failed", error=f"Line\n{content}", table=soft.table[:0]))
        runs.append(
            replace(
                soft, agent="B", seed=number, machine=content, libraries={content: content}, sources={content: content}
            )
        )
    for keyword in ("instance", "graph", "graph_missing"):
        runs += [replace(soft, env=f"CBO/Dropwave-v0({keyword}={value!r})") for value in (*EVERY[:8], [1], {"a": 2})]
    runs += [replace(soft, env=f"CBO/Dropwave-v0({more}", secret="ab") for more in ("(", "instance=[1])")]
    for run in runs:
        save_run(folder / name_of(run), run)
    return folder


@pytest.fixture(scope="module")
def report(folder, tmp_path_factory):
    page = write_report(leaderboard(folder), tmp_path_factory.mktemp("report"), formats=["svg"])
    return page.parent


def invoke(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, (words, done.output, done.exception)
    return done.stdout


def unprintable(content):
    return {character for character in content if not character.isprintable() and character != "\n"}


COMMANDS = {
    "leaderboard": ["leaderboard", "FOLDER", "--out", "OUT", "--figures", "svg"],
    "leaderboard as CSV": ["leaderboard", "FOLDER", "--csv"],
    **{f"{table} as CSV": ["leaderboard", "FOLDER", "--csv", "--table", table]
       for table in ("per_env", "profiles", "improvement", "choices", "runs")},
    "leaderboard as JSON": ["leaderboard", "FOLDER", "--json"],
    **{f"compare {name}": ["compare", "FOLDER", content, "Random"] for name, content in LABELS.items()},
}  # fmt: skip


@pytest.mark.parametrize("what", COMMANDS)
@pytest.mark.parametrize("kind", ["runs", "store"])
def test_nothing_that_is_printed_steers_a_terminal(folder, tmp_path, what, kind):
    if kind == "store":
        publish(folder, tmp_path / "store", "mine")
    where = {"FOLDER": folder if kind == "runs" else tmp_path / "store", "OUT": tmp_path / "report"}
    words = [where.get(word, word) for word in COMMANDS[what]]
    printed = invoke(*words)
    assert unprintable(printed) == set()
    if what.startswith("compare") and words[2].strip():
        assert json.loads(invoke(*words, "--json"))["agent"] == words[2]
        is_safe_csv(invoke(*words, "--csv"))
    if what.endswith("CSV"):
        is_safe_csv(printed)
    if what.endswith("JSON"):
        agents = {row["agent"] for row in json.loads(printed)["overall"]}
        assert set(EVERY) <= agents


def is_safe_csv(content):
    header, *rows = csv.reader(StringIO(content))
    assert rows
    assert {len(row) for row in rows} == {len(header)}
    for cell in (cell for row in rows for cell in row):
        assert not unprintable(cell + ("\n" if "\n" in cell else ""))
        assert "\n" not in cell
        assert not cell.startswith(FORMULA_STARTS) or re.fullmatch(r"-?[\d.]+(e[-+]?\d+)?|-inf", cell), cell


class Page(HTMLParser):
    """The tags of a page, its attributes, and the texts of its scripts."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.tags, self.handlers, self.addresses, self.scripts, self.texts = set(), set(), set(), [], []
        self.inside = ""

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.handlers |= {name for name, _ in attributes if name.startswith("on")}
        self.addresses |= {value for name, value in attributes if name in ("src", "href") and value}
        self.inside = tag

    def handle_endtag(self, tag):
        self.inside = ""

    def handle_data(self, data):
        (self.scripts if self.inside == "script" else self.texts).append(data)


def page_of(folder):
    page = Page()
    page.feed((folder / "report.html").read_text())
    return page


def test_html(report, folder, tmp_path):
    soft, hard = (evaluate("Random", env, 0, horizon=2) for env in ("CBO/Dropwave-v0", "CBO/ToyGraph-v0"))
    failed = replace(soft, agent="x" * 100, status="failed", error="why", table=soft.table[:0])
    tame = [soft, replace(soft, seed=1), hard, failed, *(replace(soft, agent="y" * 100, seed=seed) for seed in (0, 1))]
    write_report(leaderboard(tame), tmp_path, formats=["svg"])
    ours, theirs = page_of(tmp_path), page_of(report)
    assert theirs.tags <= ours.tags
    assert theirs.handlers <= ours.handlers
    assert {address for address in theirs.addresses if not address.startswith(("#", "figures/"))} <= ours.addresses
    assert len(theirs.scripts) == len(ours.scripts)
    data = [script for script in theirs.scripts if "alert(1)" in script]
    for script in data:
        json.loads(script)  # it is no code
        assert "<" not in script
    shown = " ".join(theirs.texts)
    assert "<script>alert(1)</script>" in shown
    assert unprintable(" ".join(theirs.texts + theirs.scripts)) <= unprintable(" ".join(ours.texts + ours.scripts))


def test_markdown(report, folder, tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text("before\n<!-- results: begin -->\n<!-- results: end -->\nafter\n")
    for _ in range(2):  # what was put in does not hide the markers
        invoke("leaderboard", folder, "--json", "--markdown", readme)
    content = readme.read_text()
    assert content.startswith("before\n<!-- results: begin -->\n")
    assert content.endswith("\n<!-- results: end -->\nafter\n")
    for path in [readme, *report.glob("*.md")]:
        is_safe_markdown(path.read_text().replace("<!-- results: begin -->", "").replace("<!-- results: end -->", ""))


def is_safe_markdown(content):
    assert unprintable(content) == set()
    bare = re.sub(r"\\[\\|<*`$~&_(\[]", "", content)  # what is escaped is a letter
    assert not re.search(r"<\w|<!|</|`|\]\(", bare)
    columns = None
    for line in bare.splitlines():
        if line.startswith("|"):
            count = line.count("|")
            assert columns in (None, count), line[:200]
            columns = count
        else:
            columns = None


def test_latex(report):
    own = {"begin", "end", "centering", "caption", "toprule", "midrule", "bottomrule", "endhead", "textbf", "pm",
           "textbackslash", "textasciitilde", "textasciicircum", "textless", "textgreater", "textbar"}  # fmt: skip
    for path in report.glob("*.tex"):
        _, content = path.read_text().split("\n", 1)
        assert unprintable(content) == set()
        assert set(re.findall(r"\\([A-Za-z]+)", content)) <= own
        bare = re.sub(r"\\[&%$#_{}]|\\\\", "", content)
        assert not re.search(r"[%#^~_<>|]|(?<!\{)\[", re.sub(r"\\[a-z]+", "", bare).replace("[]", "")), path
        assert bare.count("{") == bare.count("}")
        assert bare.count("$") % 2 == 0
        assert len(re.findall(r"\\begin", content)) == len(re.findall(r"\\end\{", content))
        for table in re.findall(r"\\midrule\n(.*?)\\bottomrule", bare, flags=re.DOTALL):
            rows = [row for row in table.replace("\\endhead\n", "").splitlines() if row]
            assert len({row.count("&") for row in rows}) <= 1, path


def test_files_of_a_report_stay_in_it(report):
    found = {path.relative_to(report).as_posix() for path in report.rglob("*") if path.is_file()}
    assert all(re.fullmatch(r"(figures/)?[A-Za-z0-9_-]+\.[a-z]+", name) for name in found), found
    for path in report.glob("*.csv"):
        is_safe_csv(path.read_text())
    for path in report.glob("figures/*.svg"):
        assert not re.search(r"<script|onerror=|onmouseover=", re.sub(r"<!--.*?-->", "", path.read_text(), flags=re.S))
