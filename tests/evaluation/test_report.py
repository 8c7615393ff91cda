import csv
import json
import re
import shutil
import subprocess
import zlib
from base64 import b64decode
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from cbo_gym import leaderboard
from cbo_gym._util.files import csv_cell
from cbo_gym.cli.comparisons import print_board
from cbo_gym.cli.output import console
from cbo_gym.evaluation import Run
from cbo_gym.evaluation.report import page as report
from cbo_gym.evaluation.report.contents import report_of
from cbo_gym.evaluation.report.markdown import escape, escape_latex, latex, markdown
from cbo_gym.evaluation.report.tables import table_of
from tests.support.runs import choosing_run, made_up_run

AWKWARD = (
    "<b>A</b>",
    "$x_1$ & 50 % of #1 in two\nlines | ~^\\{}",
    "_hidden [a](b) `c` *d*",
    "long" * 50,
    "long" * 49 + "lang",
)


def unpacked(packed):
    return json.loads(zlib.decompress(b64decode(packed)))


@pytest.fixture(scope="module")
def awkward(tmp_path_factory):
    """The report of agents with awkward labels on three environments, one of them with a label of its own."""
    envs = ("CBO/Dropwave-v0", "CBO/Ackley-v0(noise_std=0.1)", "CBO/<i>$\n|")
    runs = [
        made_up_run(agent, seed, [0.1, 0.1 * index], env)
        for index, agent in enumerate(AWKWARD)
        for env in envs
        for seed in range(5)
    ]
    runs.append(Run("<b>A</b>", "CBO/Dropwave-v0", 5, 2, "soft", "failed", "boom & <bust>"))
    board = leaderboard(runs)
    folder = tmp_path_factory.mktemp("awkward")
    figures = []
    page = report.write_report(board, folder, lambda *what: figures.append(what), ("svg",))
    assert figures == [(number, 8) for number in range(1, 9)]
    return board, page


def test_the_page_is_escaped_and_needs_nothing_else(awkward):
    page = awkward[1].read_text(encoding="utf-8")
    assert "<b>A" not in page
    assert "<i>" not in page
    assert "&lt;b&gt;A&lt;/b&gt;" in page
    assert "boom &amp; &lt;bust&gt;" in page
    assert "two\\nlines | ~^\\{}" in page
    assert not re.search(r"src=\"", page)
    links = set(re.findall(r"href=\"(?!data:|#)([^\"]*)\"", page))
    assert all(awkward[1].with_name("figures").joinpath(Path(link).name).is_file() for link in links)
    targets = re.findall(r"href=\"#([^\"]*)\"", page)
    assert [target for target in targets if f'id="{target}"' not in page] == []
    assert '<meta name="viewport"' in page
    assert page.count('role="img" aria-label="') == 2 + 2 * 3
    assert "Nemenyi" in page
    assert "This comparison is not complete: 76 of 90 runs have ended" in page
    assert len([unpacked(packed) for packed in re.findall(r'data-curves="([^"]+)"', page)]) == 1 + 3


def test_awkward_labels_survive_in_every_format(awkward):
    board, page = awkward
    names = {path.name for path in page.parent.rglob("*") if path.is_file()}
    assert {path for path in names if path.endswith(".svg")} == {
        *(f"{kind}-soft.svg" for kind in ("scores", "profiles", "improvement", "ranks", "targets")),
        "regret-CBO-Dropwave-v0-T2.svg",
        "regret-CBO-Ackley-v0-noise-std-0-1-T2.svg",
        "regret-CBO-i-T2.svg",
    }
    assert not any(re.search(r"[^A-Za-z0-9._-]", name) for name in names)
    with (page.parent / "overall.csv").open(newline="", encoding="utf-8") as file:
        assert {row["agent"] for row in csv.DictReader(file)} == set(map(csv_cell, AWKWARD))
    assert set(pl.read_parquet(page.parent / "overall.parquet")["agent"]) == set(AWKWARD)
    for name in ("overall", "per_env", "improvement"):
        rows = (page.parent / f"{name}.md").read_text(encoding="utf-8").splitlines()
        bars = {len(re.findall(r"(?<!\\)\|", row)) for row in rows if row.startswith("|")}
        assert len(bars) == 1, "as many cells in every row"
        tex = (page.parent / f"{name}.tex").read_text(encoding="utf-8")
        assert tex.count(r"\toprule") == tex.count(r"\bottomrule") == tex.count(r"\begin{tabular}") == 1
        body = tex.partition(r"\midrule")[2].partition(r"\bottomrule")[0].strip().splitlines()
        assert len({len(re.findall(r"(?<!\\)&", row)) for row in body}) == 1
        assert not re.search(r"(?<!\\)[#%]", tex.partition("\n")[2])
    with console.capture() as shown:
        print_board(board)
    assert "<b>A" in shown.get()


def test_latex_and_markdown_show_labels_letter_by_letter_and_long_tables_break_over_pages():
    assert escape_latex("a_b & 5 % $x$ <\\>\n[") == (
        r"a\_b \& 5 \% \$x\$ \textless{}\textbackslash{}\textgreater{}\textbackslash{}n{[}"
    )
    assert escape("noise_std=1 _a_ *b* <c> $d$ |") == r"noise_std=1 \_a\_ \*b\* \<c> \$d\$ \|"
    short, long = (table_of(["environment", "A"], [["CBO/E-v0", "0.5"]] * rows) for rows in (40, 41))
    assert r"\begin{longtable}{lr}" in latex([("Scores", long)])
    assert "longtable}{" not in latex([("Scores", short)])


def test_the_best_values_are_bold_and_missing_seeds_are_shown():
    runs = [made_up_run(agent, seed, [score]) for agent, score in (("A", 0.9), ("B", -0.1)) for seed in range(6)]
    papers = report_of(leaderboard([*runs[:-1], *(replace(run, env="CBO/ToyGraph-v0") for run in runs)])).papers
    assert r"CBO/Dropwave-v0, T=1 & \textbf{0.9} & $-$0.1 (5) \\" in latex(papers["per_env"])
    assert "| CBO/Dropwave-v0, T=1 | **0.9** | -0.1 (5) |" in markdown(papers["per_env"])
    overall = markdown(papers["overall"])
    assert "| A | 2 of 2 | 6 | **0.900** |" in overall
    assert "| B | 2 of 2 | 5-6 of 6 | -0.100 |" in overall


def test_charts_hold_the_numbers_of_the_figures():
    runs = [choosing_run("A", seed, [0, 1, 1]) for seed in range(2)] + [choosing_run("Random", 0, [2, 2, 2])]
    figures = [figure for figure in report_of(leaderboard(runs)).figures if figure.curves]
    profiles, regret, choices = (unpacked(report.chart(figure.curves)["packed"]) for figure in figures)
    assert [entry["name"] for entry in regret["legend"]] == ["A", "Random"]
    average, simple = regret["panels"]
    assert average["lines"][0]["mean"] == [0.5] * 3
    assert len(average["lines"][0]["runs"]) == 2
    assert simple["ticks"] == [0.2, 0.5, 1.0]
    assert [panel["title"] for panel in choices["panels"]] == ["A", "Random"]
    assert choices["panels"][0]["lines"][0]["mean"] == [0, 0.5, 0.6667]
    assert len(profiles["x"]) == 101


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("chromium"), reason="needs chromium")
def test_sorting_filter_and_curves_work_in_a_browser(tmp_path):
    scores = {"A": 0.5, "B": 0.9, "C": -0.2, "D": 0.7}
    runs = [made_up_run(agent, seed, [score, score]) for agent, score in scores.items() for seed in range(2)]
    runs.append(Run("E", "CBO/Dropwave-v0", 0, 2, "soft", "failed", "boom"))
    runs.append(made_up_run("A", 0, [0.5], "CBO/ToyGraph-v0", "hard"))
    page = report.write_report(leaderboard(runs), tmp_path, formats=())

    script = """<script>
      const sorted = document.querySelector("#env-CBO-Dropwave-v0-T2 table"), titles = [...sorted.tHead.rows[0].cells];
      const shown = () => [...sorted.tBodies[0].rows].filter(row => row.offsetParent);
      const names = () => shown().map(row => row.cells[0].textContent);
      const clicked = title => {
        if (title) titles.find(cell => cell.textContent === title).firstChild.click();
        return names().join("");
      };
      const said = ["", "score of play", "score of play", "agent", "agent"].map(clicked);
      form.elements.agent[1].click();
      said.push(names().join(""));
      form.elements.mode[0].click();
      said.push(document.querySelector("#group-hard").hidden, document.querySelector("#group-soft").hidden);
      form.elements.env.value = "toy";
      form.dispatchEvent(new Event("input"));
      said.push(document.querySelector("#env-CBO-Dropwave-v0-T2").hidden);
      const figure = document.querySelector("#env-CBO-Dropwave-v0-T2 .plot");
      drawChart(figure).then(() => {
        said.push(figure.querySelectorAll("canvas").length);
        said.push([...figure.querySelectorAll(".legend button")].map(button => Number(button.hidden)).join(""));
        document.title = said.join(" ");
      });
    </script></body>"""
    clicked = page.with_name("clicked.html")
    clicked.write_text(page.read_text().replace("</body>", script))
    words = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000", "--dump-dom"]
    dom = subprocess.run([*words, clicked.as_uri()], capture_output=True, text=True, check=True, timeout=60).stdout
    title = re.search("<title>(.*)</title>", dom).group(1)
    # by average regret; by score, what has none stays last; the other way round; by name; the other way round;
    # without B; without the mode hard; without the environment; then two panels, whose legend leaves out B
    assert title == "BDACE CADBE BDACE ABCDE EDCBA EDCA true false true 2 0100"
    assert 'aria-sort="descending"' in dom
