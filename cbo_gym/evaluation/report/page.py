"""The leaderboard as files: tables, figures, and one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import distribution
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cbo_gym.drawing.html import svg_of
from cbo_gym.errors import printable
from cbo_gym.evaluation.compare.leaderboard import ALL_MODES, Leaderboard
from cbo_gym.evaluation.compare.significance import TEST, Ranking, ranking
from cbo_gym.evaluation.metrics.targets import has_targets
from cbo_gym.evaluation.report.charts import Chart, choice_chart, profile_chart, regret_chart
from cbo_gym.evaluation.report.figures import (
    CurvesFigure,
    choice_figure,
    profile_figure,
    regret_figure,
)
from cbo_gym.evaluation.report.fronts import draw_fronts, has_fronts
from cbo_gym.evaluation.report.gap_tables import GAP_NOTE, gap_tables
from cbo_gym.evaluation.report.graph_loss import graph_loss_tables
from cbo_gym.evaluation.report.instances import NOTE as INSTANCES_NOTE
from cbo_gym.evaluation.report.instances import instance_tables
from cbo_gym.evaluation.report.labels import file_names, shortened
from cbo_gym.evaluation.report.latex import latex
from cbo_gym.evaluation.report.markdown import markdown
from cbo_gym.evaluation.report.palette import Look, looks
from cbo_gym.evaluation.report.paper import paper_tables
from cbo_gym.evaluation.report.plots import (
    FORMATS,
    critical_differences,
    draw_choices,
    draw_profiles,
    draw_regrets,
    improvement_matrix,
    require_formats,
    save,
    score_intervals,
)
from cbo_gym.evaluation.report.tables import (
    HEADS,
    SCORE_NOTE,
    SECONDS_NOTE,
    Table,
    choice_table,
    completeness,
    coverage_table,
    env_table,
    improvement_table,
    incomplete_rows,
    overall_table,
    provenance_sentences,
    with_ranks,
)
from cbo_gym.evaluation.report.targets import draw_targets
from cbo_gym.evaluation.report.x_axis import CostPaid, Horizontal, Rounds, has_costs
from cbo_gym.evaluation.runs.counted import env_label
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.files import csv_of, write_bytes, write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ASSETS = "cbo_gym.evaluation.report"
GRAPH_LOSS_NOTE = "Runs of an agent on the same task with its true graph, seed by seed; higher is a greater loss."
LONGEST_NAME = 60  # of an agent in a table
PAGE_DECIMALS = 2  # of probabilities, that many of them fit beside each other


Rankings = Mapping[str, Ranking | str]  # group -> of its agents


class PageCell(NamedTuple):
    """One cell of the page: what counts, below it the interval or remark, and whose it is.

    ``agent`` and ``env`` are numbers that the page's filter knows, ``share`` colours the cell, from 0 to 1.
    """

    text: str
    detail: str = ""
    agent: int | None = None
    env: int | None = None
    share: float | None = None


class PageTable(NamedTuple):
    """Titles and rows of cells; a row belongs to the agent or environment of its first cell."""

    caption: str
    header: list[PageCell]
    rows: list[list[PageCell]]


class Plot(NamedTuple):
    """An interactive chart, the name of the figure's files, what it shows in a sentence, and whose its lines are."""

    chart: Chart
    file: str
    caption: str
    by_agent: bool = True


@dataclass(frozen=True)
class _Names:
    """The names of things in figures, files and the page; the same for all of them."""

    styles: Mapping[str, Look]
    groups: Mapping[str, str]
    envs: Mapping[str, str]

    @classmethod
    def of(cls, board: Leaderboard) -> _Names:
        styles = looks(board.table["agent"])
        zoo_first = dict(sorted(styles.items(), key=lambda item: item[0].lower()))
        return cls(zoo_first, file_names(board.groups), file_names(board.table["env"]))


def write_report(
    board: Leaderboard,
    folder: Path,
    on_figure: Callable[[int, int], object] = lambda done, count: None,
    formats: Sequence[str] = FORMATS,
) -> Path:
    """Write ``report.html``, the tables, and ``figures/`` to ``folder``.

    The tables are those of :class:`Leaderboard` as CSV and Parquet: ``overall``, ``per_env``, ``profiles``,
    ``improvement``, ``choices`` and, with one row per run, ``runs``. Those that fit a paper are written in LaTeX and
    Markdown too: ``overall``, ``per_env``, ``improvement`` and ``choices``.

    Args:
        board: the leaderboard.
        folder: made if missing; files of the same names are replaced.
        on_figure: called after each figure with its number, from 1, and their number.
        formats: of the figures: ``png``, ``pdf``, ``svg``; none for no figures.

    Returns:
        the path of the HTML page, which holds all tables and curves.

    Raises:
        ArgumentError: for another format.
    """
    require_formats(formats)
    names = _Names.of(board)
    rankings = {group: ranking(board, group) for group in board.groups}
    _write_tables(board, rankings, folder)
    compared = list(_comparisons(board, rankings, names)) if formats else []
    curves = [*_profiles(board, names), *_env_curves(board, names)]
    count, plots = len(compared) + len(curves), {}
    for done, (file, draw) in enumerate(compared, start=1):
        save(draw(), folder / "figures", file, formats)
        on_figure(done, count)
    for done, one in enumerate(curves, start=1 + len(compared)):
        shown = one.show()
        plots[one.file] = Plot(one.chart(shown), one.file, f"{shown.note}.{one.remark}", one.by_agent)
        if formats:
            save(one.draw(shown), folder / "figures", one.file, formats)
            on_figure(done, count)
    page = folder / "report.html"
    write_text(page, _page(board, rankings, names, plots, formats))
    return page


def _write_tables(board: Leaderboard, rankings: Rankings, folder: Path) -> None:
    frames = {
        "overall": board.overall,
        "per_env": board.per_env,
        "profiles": board.profiles,
        "improvement": board.improvement,
        "choices": board.choices,
        "runs": board.table,
    }
    for name, frame in frames.items():
        write_text(folder / f"{name}.csv", csv_of(frame))
        content = BytesIO()  # Polars itself says too little of a disk that is full
        frame.write_parquet(content)
        write_bytes(folder / f"{name}.parquet", content.getvalue())
    for name, tables in paper_tables(board, rankings).items():
        write_text(folder / f"{name}.tex", latex(tables))
        write_text(folder / f"{name}.md", markdown(tables))


def _comparisons(board: Leaderboard, rankings: Rankings, names: _Names) -> Iterator[tuple[str, Callable[[], Figure]]]:
    """The name of each figure that is on paper alone, and what draws it."""
    for group, name in names.groups.items():
        yield f"scores-{name}", partial(score_intervals, board, group, names.styles)
        yield f"improvement-{name}", partial(improvement_matrix, board, group)
        if played := _with_targets(board, group):
            yield f"targets-{name}", partial(draw_targets, played, names.styles)
        found = rankings[group]
        if isinstance(found, Ranking):
            yield f"ranks-{name}", partial(critical_differences, found, names.styles)
    for env, runs in _by_env(board).items():
        if has_fronts(runs):
            yield f"front-{names.envs[env]}", partial(draw_fronts, env, runs, names.styles)


def _with_targets(board: Leaderboard, group: str) -> list[Run]:
    return [run for run in board.runs if has_targets(run) and group in (ALL_MODES, run.mode)]


class _Curves(NamedTuple):
    """Curves that are on paper and on the page: what works them out, once, and what renders them."""

    file: str
    show: Callable[[], CurvesFigure]
    draw: Callable[[CurvesFigure], Figure]
    chart: Callable[[CurvesFigure], Chart]
    remark: str = ""
    by_agent: bool = True


def _profiles(board: Leaderboard, names: _Names) -> Iterator[_Curves]:
    for group, name in names.groups.items():
        show, draw = partial(profile_figure, board, group, names.styles), partial(draw_profiles, group)
        yield _Curves(f"profiles-{name}", show, draw, profile_chart)


def _env_curves(board: Leaderboard, names: _Names) -> Iterator[_Curves]:
    """Of every environment, against rounds, and where the actions have costs against these."""
    for env, runs in _by_env(board).items():
        yield from _curves(env, runs, names, "", Rounds, "")
        if all(map(has_costs, runs)):
            remark = " Against the cost paid: a run counts with what it had reached by then."
            yield from _curves(env, runs, names, "-cost", CostPaid, remark)


def _curves(
    env: str, runs: Sequence[Run], names: _Names, suffix: str, against: type[Horizontal], remark: str
) -> Iterator[_Curves]:
    yield _Curves(
        f"regret{suffix}-{names.envs[env]}",
        partial(regret_figure, runs, names.styles, against),
        lambda shown: draw_regrets({env: shown}),
        regret_chart,
        remark,
    )
    if any(run.choices for run in runs):
        yield _Curves(
            f"choices{suffix}-{names.envs[env]}",
            partial(choice_figure, runs, names.styles, against),
            lambda shown: draw_choices({env: shown}),
            choice_chart,
            remark,
            by_agent=False,
        )


def _by_env(board: Leaderboard) -> dict[str, list[Run]]:
    """The finished runs of each environment."""
    found: dict[str, list[Run]] = {}
    for run in sorted(board.runs, key=env_label):
        found.setdefault(env_label(run), []).append(run)
    return found


def _page(
    board: Leaderboard, rankings: Rankings, names: _Names, plots: Mapping[str, Plot], formats: Sequence[str]
) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # late: needed only here

    environment = Environment(
        loader=PackageLoader(ASSETS, "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = _Page(board, rankings, names, plots)
    modes = dict(board.table.select("env", "mode").unique().iter_rows())
    source, *mixed = provenance_sentences(board)
    return environment.get_template("report.html.jinja").render(
        uplot=_uplot,
        asset=lambda name: files(ASSETS).joinpath("assets", name).read_text(encoding="utf-8"),
        provenance=source,
        mixed=mixed,
        heads=HEADS,
        incomplete=completeness(board),
        notes=[SCORE_NOTE, SECONDS_NOTE],
        test=TEST,
        formats=formats,
        agents=[
            {"name": printable(agent), "short": page.short[printable(agent)], "look": asdict(look)}
            for agent, look in names.styles.items()
        ],
        envs=[{"name": printable(env), "mode": modes[env]} for env in names.envs],
        modes=sorted(set(modes.values())),
        groups=[page.group(group) for group in names.groups],
        extra=[part for part in (page.gaps(), page.graph_losses(), page.instances()) if part["tables"]],
        sections=[page.env(env) for env in names.envs if env in set(board.per_env["env"])],
        coverage=page.coverage(),
        unfinished=[(what, _printable_lines(why)) for what, why in incomplete_rows(board)],
    )


def _printable_lines(text: str) -> str:
    return "\n".join(map(printable, text.splitlines()))


def _uplot(name: str) -> str:
    """A file of uPlot, the library that draws the curves; its Python package would import IPython."""
    return Path(str(distribution("uplot-python").locate_file(f"uplot/static/{name}"))).read_text(encoding="utf-8")


class _Page:
    """Parts of a leaderboard as the template shows them."""

    def __init__(self, board: Leaderboard, rankings: Rankings, names: _Names, plots: Mapping[str, Plot]) -> None:
        self.board = board
        self.plots = plots
        self.rankings = rankings
        self.names = names
        self.agents = {printable(agent): number for number, agent in enumerate(names.styles)}
        self.short = shortened(self.agents, LONGEST_NAME)
        self.envs = {printable(env): number for number, env in enumerate(names.envs)}

    def group(self, group: str) -> dict[str, Any]:
        """The part of a feedback mode, or of all."""
        name = self.names.groups[group]
        found = self.rankings[group]
        pairs = improvement_table(self.board, group, PAGE_DECIMALS)
        played = _with_targets(self.board, group)
        ranked = ["ranks"] if isinstance(found, Ranking) else []
        return {
            "id": f"group-{name}",
            "title": group[:1].upper() + group[1:],
            "mode": None if group == ALL_MODES else group,
            "table": self.matrix(
                f"{group[:1].upper() + group[1:]}: scores over environments",
                with_ranks(overall_table(self.board, group), found),
            ),
            "test": found if isinstance(found, str) else f"{found.test_in_short}.",
            "tested": isinstance(found, Ranking),
            "figures": {
                kind: f"{kind}-{name}" for kind in ("scores", "improvement", *(["targets"] if played else []), *ranked)
            },
            "profiles": self.plots[f"profiles-{name}"],
            "targets": svg_of(draw_targets(played, self.names.styles)) if played else "",
            "pairs": self.matrix(f"{group}: probability that the agent in the row scores higher", pairs, shaded=True),
        }

    def gaps(self) -> dict[str, Any]:
        """GAP and PA-GAP, of environments of suites that are compared by them."""
        tables = [self.matrix(title, table) for title, table in gap_tables(self.board)]
        return {"id": "gap", "title": "GAP and PA-GAP", "note": GAP_NOTE, "tables": tables}

    def graph_losses(self) -> dict[str, Any]:
        """Losses of agents that are not told the true graph."""
        tables = [self.matrix(env, table) for env, table in graph_loss_tables(self.board).items()]
        return {"id": "graph-loss", "title": "Without the true graph", "note": GRAPH_LOSS_NOTE, "tables": tables}

    def instances(self) -> dict[str, Any]:
        """Losses of agents on systems that are turned."""
        tables = [self.matrix(env, table) for env, table in instance_tables(self.board).items()]
        return {"id": "instances", "title": "On instances", "note": INSTANCES_NOTE, "tables": tables}

    def env(self, env: str) -> dict[str, Any]:
        """The part of an environment."""
        name = self.names.envs[env]
        files = (f"{what}{suffix}-{name}" for suffix in ("", "-cost") for what in ("regret", "choices"))
        chosen = choice_table(self.board, env)
        return {
            "id": f"env-{name}",
            "title": printable(env),
            "number": self.envs[printable(env)],
            "table": self.matrix(f"Means on {printable(env)}", env_table(self.board, env)),
            "plots": [self.plots[file] for file in files if file in self.plots],
            "front": self.front(env),
            "choices": self.matrix(f"Choices on {printable(env)}", chosen) if chosen.rows else None,
        }

    def front(self, env: str) -> str:
        """A picture of the Pareto front as the text of an SVG; empty where there is none."""
        runs = _by_env(self.board).get(env, [])
        return svg_of(draw_fronts(env, runs, self.names.styles)) if runs and has_fronts(runs) else ""

    def coverage(self) -> PageTable:
        """The fate of every pair."""
        return self.matrix("Runs of every agent on every environment", coverage_table(self.board))

    def matrix(self, caption: str, table: Table, *, shaded: bool = False) -> PageTable:
        """A table whose rows and columns belong to the agents and environments that they name.

        Args:
            caption: for those who hear the page.
            table: what it shows.
            shaded: colour cells by their values, from 0 to 1.
        """
        first, *others = table.header
        header = [PageCell(first), *(PageCell(title, agent=self.agents.get(title)) for title in others)]
        body = [
            [
                PageCell(name.text, agent=self.agents.get(name.text), env=self.envs.get(name.text)),
                *(
                    PageCell(cell.text, cell.detail, column.agent, share=cell.value if shaded else None)
                    for column, cell in zip(header[1:], cells, strict=True)
                ),
            ]
            for name, *cells in table.rows
        ]
        return PageTable(caption, header, body)
