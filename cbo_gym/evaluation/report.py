"""The leaderboard as files: tables, figures, and one HTML page that needs nothing else."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from cbo_gym.evaluation.gap_tables import GAP_NOTE, gap_tables
from cbo_gym.evaluation.leaderboard import Leaderboard, env_label
from cbo_gym.evaluation.plots import (
    choice_curves,
    improvement_matrix,
    performance_profiles,
    regret_curves,
    score_intervals,
)
from cbo_gym.evaluation.tables import (
    SCORE_NOTE,
    SECONDS_NOTE,
    TextTable,
    choice_table,
    coverage_table,
    env_table,
    improvement_table,
    incomplete_rows,
    overall_table,
    provenance,
)
from cbo_gym.files import replacing, write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 110

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 90rem; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: .5rem 0 1rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .6rem; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
th { border-bottom: 2px solid #888; padding: 0; }
th button { all: unset; cursor: pointer; padding: .3rem .6rem; }
th button:hover, th button:focus-visible { background: #eef; }
th[aria-sort=ascending] button::after { content: " ▲"; }
th[aria-sort=descending] button::after { content: " ▼"; }
nav a { margin-right: 1rem; }
.wide { overflow-x: auto; }
.figures { display: flex; flex-wrap: wrap; align-items: flex-start; gap: 1rem; margin-bottom: 1rem; }
img { max-width: min(100%, 40rem); }
.curves img { max-width: 100%; }
.note { color: #555; font-size: 13px; margin-top: 0; }
pre { background: #f5f5f5; padding: .8rem; overflow-x: auto; font-size: 13px; }
"""

# A click on a title sorts by that column, another one the other way round. Cells count by the number that they begin
# with, others by their text; cells without a value stay last.
SCRIPT = """
const value = cell => {
  const text = cell.textContent.trim(), number = parseFloat(text.replaceAll(",", ""));
  return text === "-" ? null : Number.isNaN(number) ? text : number;
};
const compare = (a, b) =>
  typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en");
document.querySelectorAll("th button").forEach(button => button.addEventListener("click", () => {
  const head = button.parentElement, table = head.closest("table"), body = table.tBodies[0];
  const sign = head.ariaSort === "ascending" ? -1 : 1;
  const rows = [...body.rows].map(row => [value(row.cells[head.cellIndex]), row]);
  rows.sort(([a], [b]) => a === null || b === null ? (a === null) - (b === null) : sign * compare(a, b));
  table.querySelectorAll("th").forEach(other => other.removeAttribute("aria-sort"));
  head.ariaSort = sign > 0 ? "ascending" : "descending";
  body.append(...rows.map(([, row]) => row));
}));
"""

INTRODUCTION = """Score of the recommendation: (expected reward - random) / (optimum - random) of the action that the
agent recommends after the last round; random is the mean of a random action. Score of play: the same of the expected
reward averaged over all rounds as they were played. Interquartile mean: of the recommendation's score in the middle
half of all runs, every environment with the same weight. Seconds a round: act, update and recommend together, which the
table of the runs has apart. Intervals are 95 %: over environments a bootstrap of the seeds within each, per environment
a t-interval. Agents that did not finish on every environment stand below those that did: their numbers are of other
environments. Click on a title to sort."""
NOTE = f'<p class="note">{escape(f"{SCORE_NOTE} {SECONDS_NOTE}")}</p>'


def write_report(board: Leaderboard, folder: Path, on_figure: Callable[[int, int], None] | None = None) -> Path:
    """Write ``report.html``, each table as CSV and Parquet, and ``figures/*.png`` to ``folder``.

    The tables are those of :class:`Leaderboard`: ``overall``, ``per_env``, ``profiles``, ``improvement``, ``choices``
    and, with a row a run, ``runs``.

    Args:
        board: the leaderboard.
        folder: made if missing; files of the same names are replaced.
        on_figure: called after each figure with its number, from 1, and their number.

    Returns:
        the path of the HTML page, which holds all tables and figures.
    """
    tables = {
        "overall": board.overall,
        "per_env": board.per_env,
        "profiles": board.profiles,
        "improvement": board.improvement,
        "choices": board.choices,
        "runs": board.table,
    }
    for name, table in tables.items():
        with replacing(folder / f"{name}.csv") as path:
            table.write_csv(path)
        with replacing(folder / f"{name}.parquet") as path:
            table.write_parquet(path)
    figures = {}
    total = 3 * len(board.groups) + len(_envs(board)) + board.choices["env"].n_unique()
    for done, (name, figure) in enumerate(_draw(board), start=1):
        figures[name] = _png(figure)
        with replacing(folder / "figures" / f"{name}.png") as path:
            path.write_bytes(figures[name])
        if on_figure:
            on_figure(done, total)
    page = folder / "report.html"
    write_text(page, _page(board, figures))
    return page


def _envs(board: Leaderboard) -> list[str]:
    """Environments with a finished run."""
    return sorted({env_label(run) for run in board.runs})


def _draw(board: Leaderboard) -> Iterator[tuple[str, Figure]]:
    """The name of each figure, and the figure."""
    agents = sorted({run.agent for run in board.runs})
    for group in board.groups:
        yield _slug("scores", group), score_intervals(board, group)
        yield _slug("profiles", group), performance_profiles(board, group, agents)
        yield _slug("improvement", group), improvement_matrix(board, group)
    for env in _envs(board):
        runs = [run for run in board.runs if env_label(run) == env]
        yield _slug("regret", env), regret_curves(runs, agents)
        chosen = choice_curves(runs)
        if chosen is not None:
            yield _slug("choices", env), chosen


def _slug(kind: str, name: str) -> str:
    return f"{kind}-{re.sub(r'[^A-Za-z0-9.=]+', '-', name).strip('-')}"


def _png(figure: Figure) -> bytes:
    file = BytesIO()
    figure.savefig(file, format="png", dpi=DPI)
    return file.getvalue()


def _page(board: Leaderboard, figures: dict[str, bytes]) -> str:
    groups = "".join(_group(board, group, figures) for group in board.groups)
    envs = "".join(_env(board, env, figures) for env in board.per_env["env"].unique().sort())
    links = [*((_slug("group", group), group) for group in board.groups), ("envs", "per environment")]
    links += [("coverage", "what was run"), ("incomplete", "failed and skipped")]
    navigation = "".join(f'<a href="#{target}">{escape(title)}</a>' for target, title in links)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>cbo-gym leaderboard</title>
<link rel="icon" href="data:,"><style>{STYLE}</style></head>
<body><h1>cbo-gym leaderboard</h1>
<p>{escape(provenance(board))}</p>
<p>{escape(INTRODUCTION)}</p>
<nav>{navigation}</nav>
{groups}
{_gaps(board)}<h2 id="envs">Per environment</h2>{envs}
<h2 id="coverage">What was run</h2>{_table(coverage_table(board))}
<h2 id="incomplete">Failed and skipped</h2>{_incomplete(incomplete_rows(board))}
<script>{SCRIPT}</script></body></html>
"""


def _group(board: Leaderboard, group: str, figures: dict[str, bytes]) -> str:
    images = "".join(
        _image(figures[_slug(kind, group)], f"{title}, {group}")
        for kind, title in (
            ("scores", "Interquartile means and means of the score"),
            ("profiles", "Performance profiles"),
            ("improvement", "Probability that one agent scores higher than another"),
        )
    )
    pairs = _table(improvement_table(board, group))
    return f"""<h2 id="{_slug("group", group)}">{escape(group.capitalize())}</h2>
{_table(overall_table(board, group))}{NOTE}<div class="figures">{images}</div>
<details><summary>Probability of improvement, with intervals</summary>{pairs}</details>
"""


def _gaps(board: Leaderboard) -> str:
    tables = "".join(f"<h3>{escape(title)}</h3>{_table(table)}" for title, table in gap_tables(board))
    note = f'<p class="note">{escape(GAP_NOTE)}</p>'
    return f'<h2 id="gap">GAP and PA-GAP</h2>{note}{tables}' if tables else ""


def _env(board: Leaderboard, env: str, figures: dict[str, bytes]) -> str:
    captions = {
        "regret": f"Average and simple regret against rounds, {env}",
        "choices": f"Share of rounds in which each target set or scope was chosen, {env}",
    }
    named = {_slug(kind, env): caption for kind, caption in captions.items()}
    images = "".join(_image(figures[name], caption) for name, caption in named.items() if name in figures)
    chosen = choice_table(board, env)
    choices = f"<details><summary>Choices</summary>{_table(chosen)}</details>" if chosen.rows else ""
    return f'<h3>{escape(env)}</h3>{_table(env_table(board, env))}{NOTE}<div class="curves">{images}</div>{choices}'


def _image(png: bytes, description: str) -> str:
    return f'<img alt="{escape(description)}" src="data:image/png;base64,{base64.b64encode(png).decode()}">'


def _table(table: TextTable) -> str:
    head = "".join(f'<th scope="col"><button>{escape(title)}</button></th>' for title in table.header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _incomplete(rows: list[tuple[str, str]]) -> str:
    if not rows:
        return "<p>No run failed and no pair was skipped.</p>"
    return "".join(
        f"<details open><summary>{escape(what)}</summary><pre>{escape(why)}</pre></details>" for what, why in rows
    )
