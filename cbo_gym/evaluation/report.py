"""The leaderboard as files: CSV tables, a figure, and one HTML page that needs nothing else."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Sequence
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from cbo_gym.evaluation.leaderboard import METRICS, Leaderboard
from cbo_gym.evaluation.plots import choice_curves, regret_curves
from cbo_gym.evaluation.results import Run
from cbo_gym.files import replacing, write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 80rem; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; }
th, td { padding: .3rem .6rem; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
th { border-bottom: 2px solid #888; }
.wide { overflow-x: auto; }
img { max-width: 100%; }
pre { background: #f5f5f5; padding: .8rem; overflow-x: auto; font-size: 13px; }
"""


def overall_rows(board: Leaderboard) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the table over all environments, as text."""
    header = ["agent", "environments", "score", "95 % interval", "average score", "95 % interval"]
    rows = [
        [
            row["agent"],
            str(row["envs"]),
            f"{row['score']:.3f}",
            f"{row['score_low']:.3f} to {row['score_high']:.3f}",
            f"{row['average_score']:.3f}",
            f"{row['average_score_low']:.3f} to {row['average_score_high']:.3f}",
        ]
        for row in board.overall.iter_rows(named=True)
    ]
    return header, rows


def env_rows(
    board: Leaderboard, env: str, metrics: Sequence[str] = tuple(METRICS)
) -> tuple[list[str], list[list[str]]]:
    """Header and rows of one environment's table, as text: mean and half the 95 % interval."""
    header = ["agent", "seeds", *(METRICS[name] for name in metrics)]
    rows = [
        [row["agent"], str(row["seeds"]), *(_number(row[name], row[f"{name}_half"]) for name in metrics)]
        for row in board.per_env.iter_rows(named=True)
        if row["env"] == env
    ]
    return header, rows


def choice_rows(board: Leaderboard) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the table of target sets and scopes chosen, as text."""
    rows = [
        [row["env"], row["agent"], row["choice"], _number(row["frequency"], row["frequency_half"])]
        for row in board.choices.iter_rows(named=True)
    ]
    return ["environment", "agent", "target set or scope", "share of rounds"], rows


def incomplete_rows(board: Leaderboard) -> list[tuple[str, str]]:
    """What gave no number, with the reason: failed runs, and each skipped pair once."""
    rows = [(f"failed: {run.agent} on {run.env}, seed {run.seed}", run.error) for run in board.failed]
    skipped = {(run.agent, run.env): run.error for run in board.skipped}
    rows += [(f"skipped: {agent} on {env}", why) for (agent, env), why in skipped.items()]
    return rows


def _number(mean: float, half: float | None) -> str:
    """``12.3 ± 4.5``: both with the decimals that show two digits of the interval."""
    if not half:
        return f"{mean:.4g}"
    decimals = max(0, 1 - math.floor(math.log10(half)))
    return f"{mean:,.{decimals}f} ± {half:,.{decimals}f}" if decimals <= 4 else f"{mean:.2g}"


def write_report(board: Leaderboard, folder: Path) -> Path:
    """Write ``report.html``, ``regret.png``, ``overall.csv``, ``per_env.csv`` and ``choices.csv`` to ``folder``.

    Where target sets or scopes were chosen there is ``choices.png`` too.

    Returns:
        the path of the HTML page, which holds the figures and the tables.
    """
    figures = {"regret": regret_curves(board.runs), "choices": choice_curves(board.runs)}
    images = {name: _png(figure) for name, figure in figures.items() if figure}
    for name, image in images.items():
        with replacing(folder / f"{name}.png") as path:
            path.write_bytes(image)
    for name, table in (("overall", board.overall), ("per_env", board.per_env), ("choices", board.choices)):
        with replacing(folder / f"{name}.csv") as path:
            table.write_csv(path)
    page = folder / "report.html"
    write_text(page, _page(board, images))
    return page


def _png(figure: Figure) -> bytes:
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=130)
    return buffer.getvalue()


def _page(board: Leaderboard, images: dict[str, bytes]) -> str:
    envs = board.per_env["env"].unique(maintain_order=True)
    tables = "".join(f"<h3>{escape(env)}</h3>{_table(*env_rows(board, env))}" for env in envs)
    chosen = ""
    if "choices" in images:
        alt = "Share of rounds in which each target set or scope was chosen"
        chosen = f"<h2>Choices</h2>{_image(images['choices'], alt)}{_table(*choice_rows(board))}"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>cbo-gym leaderboard</title><style>{STYLE}</style></head>
<body><h1>cbo-gym leaderboard</h1>
<p>{escape(_provenance(board.runs))} Score: (expected reward - random) / (optimum - random) of the action that the
agent recommends after the last round; average score: the same of the expected reward averaged over all rounds.
Intervals are 95 %: over all environments a bootstrap of the seeds within each, per environment a t-interval.</p>
<h2>Over all environments</h2>{_table(*overall_rows(board))}
<h2>Regret</h2>{_image(images["regret"], "Average and simple regret against rounds")}
<h2>Per environment</h2>{tables}
{chosen}
{_incomplete(incomplete_rows(board))}</body></html>
"""


def _image(png: bytes, alt: str) -> str:
    return f'<img alt="{escape(alt)}"\nsrc="data:image/png;base64,{base64.b64encode(png).decode()}">'


def _provenance(runs: Sequence[Run]) -> str:
    seeds = sorted({run.seed for run in runs})
    versions = ", ".join(sorted({run.version for run in runs}))
    return f"{len(runs)} finished runs, seeds {', '.join(map(str, seeds))}, cbo-gym {versions}."


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(title)}</th>" for title in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def _incomplete(rows: Sequence[tuple[str, str]]) -> str:
    if not rows:
        return "<p>No run failed and no pair was skipped.</p>"
    items = "".join(f"<h3>{escape(what)}</h3><pre>{escape(why)}</pre>" for what, why in rows)
    return f"<h2>Failed and skipped</h2>{items}"
