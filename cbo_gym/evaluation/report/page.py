"""Write the report of a leaderboard as files and a self-contained HTML page, and show results in notebooks."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import distribution
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from cbo_gym._util.files import csv_of, expand_home, write_bytes, write_text
from cbo_gym.drawing.html import facts, svg_of, table
from cbo_gym.errors import printable
from cbo_gym.evaluation.comparison.leaderboard import ALL_MODES, Leaderboard
from cbo_gym.evaluation.comparison.provenance import completeness
from cbo_gym.evaluation.comparison.significance import TEST
from cbo_gym.evaluation.report.contents import Report, report_of
from cbo_gym.evaluation.report.curves import Curve, CurvesFigure, Panel
from cbo_gym.evaluation.report.figures import write_figures
from cbo_gym.evaluation.report.markdown import write_papers
from cbo_gym.evaluation.report.palette import shorten
from cbo_gym.evaluation.report.plots import FORMATS, plot_board, plot_run
from cbo_gym.evaluation.report.tables import HEADS, SCORE_NOTE, SECONDS_NOTE, overall_table
from cbo_gym.evaluation.runs.results import Run, last_line

ASSETS = "cbo_gym.evaluation.report"
# Largest number of characters of an agent's label in a table.
NAME_WIDTH = 60
# Number of significant digits of a chart's values.
DIGITS = 4
# Largest number of lines that the description of a panel lists.
MAX_DESCRIBED = 12
# Columns of tables in a notebook.
NOTEBOOK_COLUMNS = ("iqm", "average_score", "seconds")
# Largest number of environments for which a notebook shows curves.
MAX_NOTEBOOK_ENVS = 12


def write_report(
    board: Leaderboard,
    folder: Path | str,
    on_figure: Callable[[int, int], object] = lambda done, count: None,
    formats: Sequence[str] = FORMATS,
) -> Path:
    """Write ``report.html``, the tables, and ``figures/`` to ``folder``.

    The tables are those of :class:`Leaderboard` as CSV and Parquet: ``overall``, ``per_env``, ``profiles``,
    ``improvement``, ``choices`` and, with one row per run, ``runs``. ``overall``, ``per_env``, ``improvement`` and
    ``choices`` are also written in LaTeX and Markdown.

    Args:
        board: the leaderboard.
        folder: folder of the report, created if missing; files of the same names are replaced.
        on_figure: called after each figure with its number, from 1, and the number of all figures.
        formats: formats of the figures: ``png``, ``pdf``, ``svg``; empty for no figures.

    Returns:
        Path of the HTML page, which holds all tables and curves.

    Raises:
        ArgumentError: for an unknown format.
    """
    folder, report = expand_home(folder), report_of(board)
    drawings = write_figures(report.figures, folder / "figures", formats, on_figure)
    for name, frame in board.frames.items():
        write_text(folder / f"{name}.csv", csv_of(frame))
        # Polars does not write the file, because its error on a full disk does not name it.
        content = BytesIO()
        frame.write_parquet(content)
        write_bytes(folder / f"{name}.parquet", content.getvalue())
    write_papers(report.papers, folder)
    page = folder / "report.html"
    write_text(page, _page(report, drawings, formats))
    return page


def _page(report: Report, drawings: Mapping[str, str], formats: Sequence[str]) -> str:
    loader = PackageLoader(ASSETS, "assets")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    board, agents = report.board, [printable(agent) for agent in report.styles]
    envs = sorted(set(board.table["env"]))
    short, modes = shorten(agents, NAME_WIDTH), dict(board.table.select("env", "mode").unique().iter_rows())
    return environment.get_template("report.html.jinja").render(
        uplot=_uplot,
        asset=lambda name: files(ASSETS).joinpath("assets", name).read_text(encoding="utf-8"),
        chart_of=chart,
        drawings=drawings,
        report=report,
        all_modes=ALL_MODES,
        heads=HEADS,
        notes=[SCORE_NOTE, SECONDS_NOTE],
        test=TEST,
        formats=formats,
        agents=[
            {"name": agent, "short": short[agent], "look": asdict(style)}
            for agent, style in zip(agents, report.styles.values(), strict=True)
        ],
        agent_numbers={agent: number for number, agent in enumerate(agents)},
        envs=[{"name": printable(env), "mode": modes[env]} for env in envs],
        env_numbers={printable(env): number for number, env in enumerate(envs)},
        modes=sorted(set(modes.values())),
        unfinished=[(row, "\n".join(map(printable, reason.splitlines()))) for row, reason in report.unfinished],
        printable=printable,
    )


def _uplot(name: str) -> str:
    """Return a file of the JavaScript library uPlot; importing its Python package would import IPython."""
    return Path(str(distribution("uplot-python").locate_file(f"uplot/static/{name}"))).read_text(encoding="utf-8")


def chart(figure: CurvesFigure) -> dict[str, Any]:
    """Return the data of an interactive chart for the page's template.

    ``columns`` is the number of columns of panels, ``panels`` has their titles and descriptions, and ``packed`` the
    curves for report.js, as deflated JSON in base64.
    """
    keys, x = list(figure.styles), figure.horizontal.chart_x
    panels = [
        {
            "title": printable(panel.title),
            "range": panel.limits,
            "ticks": list(panel.ticks),
            "lines": [{"key": keys.index(name), **_line(curve, x)} for name, curve in panel.curves.items()],
        }
        for panel in figure.panels
    ]
    content = {
        "x": x.tolist(),
        "xTitle": figure.horizontal.title,
        "legend": [{"name": printable(name), **asdict(style)} for name, style in figure.styles.items()],
        "panels": panels,
    }
    columns = len(panels)
    if columns > 2:
        # Leave as few cells of the last row empty as possible.
        columns = min((3, 4, 2), key=lambda count: -len(panels) % count)
    return {
        "columns": columns,
        "panels": [(printable(panel.title), _description(panel, figure.read_at)) for panel in figure.panels],
        "packed": b64encode(zlib.compress(json.dumps(content, separators=(",", ":")).encode(), 9)).decode(),
    }


def _line(curve: Curve, x: np.ndarray) -> dict[str, Any]:
    """Return a curve at ``x`` with a few digits, and None where it has no value."""
    indices = np.searchsorted(curve.x, x)
    has_value = np.isin(x, curve.x)

    def to_digits(values: np.ndarray) -> list[float | None]:
        rounded = [float(f"{values[index]:.{DIGITS}g}") for index in indices.clip(max=len(values) - 1)]
        return [value if known else None for value, known in zip(rounded, has_value, strict=True)]

    ends = {name: None if end is None else to_digits(end) for name, end in (("low", curve.low), ("high", curve.high))}
    return {"mean": to_digits(curve.mean), **ends, "runs": list(map(to_digits, curve.runs))}


def _description(panel: Panel, read_at: tuple[int, str]) -> str:
    """Describe a panel in a sentence, for readers who cannot see it."""
    index, position = read_at
    short = shorten(panel.curves, 40)
    values = sorted((float(curve.mean[index]), short[name]) for name, curve in panel.curves.items())
    listed = ", ".join(f"{name} {value:.3g}" for value, name in values[:MAX_DESCRIBED])
    remainder = f" and {len(values) - MAX_DESCRIBED} more" if len(values) > MAX_DESCRIBED else ""
    return f"{printable(panel.title)} {position}, lowest first: {listed}{remainder}."


def show_run(run: Run) -> str:
    """Return the HTML of a run for a notebook: its metadata, final numbers and curves."""
    rows: list[tuple[str, object]] = [
        ("agent", run.agent), ("environment", run.env), ("seed", run.seed), ("rounds", run.horizon),
    ]  # fmt: skip
    if run.status != "finished":
        return facts(f"Run, {run.status}", [*rows, ("why", last_line(run.error))])
    last = run.table.row(-1, named=True)
    rows += [
        ("optimum", f"{run.optimum:.5g}"),
        ("best expected reward", f"{run.curve('expected_reward').max():.5g}"),
        ("expected reward of the recommendation", f"{last['recommended_reward']:.5g}"),
        ("simple regret", f"{last['simple_regret']:.4g}"),
        ("average regret", f"{last['average_regret']:.4g}"),
        ("seconds a round", f"{run.seconds_a_round:.3g}"),
    ]
    return facts("Run", rows) + svg_of(plot_run(run))


def show_board(board: Leaderboard) -> str:
    """Return the HTML of a leaderboard for a notebook: tables of groups, and curves of up to twelve environments."""
    blocks = []
    for group in board.groups:
        scores = overall_table(board, group, NOTEBOOK_COLUMNS)
        blocks.append(table(f"{group.capitalize()}, over environments", scores.header, scores.lines))
    blocks += [f"<p>{note}</p>" for note in (completeness(board), SCORE_NOTE) if note]
    if board.per_env["env"].n_unique() <= MAX_NOTEBOOK_ENVS:
        blocks.append(svg_of(plot_board(board)))
    return "".join(blocks)
