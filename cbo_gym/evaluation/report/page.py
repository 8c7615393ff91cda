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

from cbo_gym.errors import printable
from cbo_gym.evaluation.compare.leaderboard import ALL_MODES, Leaderboard
from cbo_gym.evaluation.compare.significance import TEST, Ranking, ranking
from cbo_gym.evaluation.report.charts import Chart, choice_chart, profile_chart, regret_chart
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
    choice_curves,
    critical_differences,
    improvement_matrix,
    performance_profiles,
    regret_curves,
    require_formats,
    save,
    score_intervals,
    what_is_drawn,
)
from cbo_gym.evaluation.report.tables import (
    SCORE_NOTE,
    SECONDS_NOTE,
    Table,
    choice_table,
    completeness,
    coverage_table,
    csv_of,
    env_table,
    improvement_table,
    incomplete_rows,
    overall_table,
    provenance,
    with_ranks,
)
from cbo_gym.evaluation.report.x_axis import CostPaid, Horizontal, Rounds, has_costs
from cbo_gym.evaluation.runs.counted import env_label
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.files import write_bytes, write_text

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
    """What figures, files and the page call things; the same for all of them."""

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
    on_figure: Callable[[int, int], None] | None = None,
    formats: Sequence[str] = FORMATS,
) -> Path:
    """Write ``report.html``, the tables, and ``figures/`` to ``folder``.

    The tables are those of :class:`Leaderboard` as CSV and Parquet: ``overall``, ``per_env``, ``profiles``,
    ``improvement``, ``choices`` and, with a row a run, ``runs``. Those that fit a paper are there in LaTeX and Markdown
    too: ``overall``, ``per_env``, ``improvement`` and ``choices``.

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
    drawn = list(_figures(board, rankings, names)) if formats else []
    for done, (name, draw) in enumerate(drawn, start=1):
        save(draw(), folder / "figures", name, formats)
        if on_figure:
            on_figure(done, len(drawn))
    page = folder / "report.html"
    write_text(page, _page(board, rankings, names, formats))
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


def _figures(board: Leaderboard, rankings: Rankings, names: _Names) -> Iterator[tuple[str, Callable[[], Figure]]]:
    """The name of each figure, and what draws it."""
    for group, name in names.groups.items():
        yield f"scores-{name}", partial(score_intervals, board, group, names.styles)
        yield f"profiles-{name}", partial(performance_profiles, board, group, names.styles)
        yield f"improvement-{name}", partial(improvement_matrix, board, group)
        found = rankings[group]
        if isinstance(found, Ranking):
            yield f"ranks-{name}", partial(critical_differences, found, names.styles)
    for env, runs in _by_env(board).items():
        yield f"regret-{names.envs[env]}", partial(regret_curves, runs, names.styles)
        if any(run.choices for run in runs):
            yield f"choices-{names.envs[env]}", partial(choice_curves, runs)
        if all(map(has_costs, runs)):
            yield f"regret-cost-{names.envs[env]}", partial(regret_curves, runs, names.styles, CostPaid)
            if any(run.choices for run in runs):
                yield f"choices-cost-{names.envs[env]}", partial(choice_curves, runs, CostPaid)


def _by_env(board: Leaderboard) -> dict[str, list[Run]]:
    """The finished runs of each environment."""
    found: dict[str, list[Run]] = {}
    for run in sorted(board.runs, key=env_label):
        found.setdefault(env_label(run), []).append(run)
    return found


def _page(board: Leaderboard, rankings: Rankings, names: _Names, formats: Sequence[str]) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # late: needed only here

    environment = Environment(
        loader=PackageLoader(ASSETS, "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = _Page(board, rankings, names)
    modes = dict(board.table.select("env", "mode").unique().iter_rows())
    return environment.get_template("report.html.jinja").render(
        uplot=_uplot,
        asset=lambda name: files(ASSETS).joinpath("assets", name).read_text(encoding="utf-8"),
        provenance=provenance(board),
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

    def __init__(self, board: Leaderboard, rankings: Rankings, names: _Names) -> None:
        self.board = board
        self.rankings = rankings
        self.names = names
        self.agents = {printable(agent): number for number, agent in enumerate(names.styles)}
        self.short = shortened(self.agents, LONGEST_NAME)
        self.envs = {printable(env): number for number, env in enumerate(names.envs)}
        self.runs = _by_env(board)

    def group(self, group: str) -> dict[str, Any]:
        """What is shown of a feedback mode, or of all."""
        name = self.names.groups[group]
        profiles = Plot(
            profile_chart(self.board, group, self.names.styles),
            f"profiles-{name}",
            "Performance profiles: higher is better.",
        )
        found = self.rankings[group]
        pairs = improvement_table(self.board, group, PAGE_DECIMALS)
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
                kind: f"{kind}-{name}"
                for kind in ("scores", "improvement", *(["ranks"] if isinstance(found, Ranking) else []))
            },
            "profiles": profiles,
            "pairs": self.matrix(f"{group}: probability that the agent in the row scores higher", pairs, shaded=True),
        }

    def gaps(self) -> dict[str, Any]:
        """GAP and PA-GAP, of environments of suites that are compared by them."""
        tables = [self.matrix(title, table) for title, table in gap_tables(self.board)]
        return {"id": "gap", "title": "GAP and PA-GAP", "note": GAP_NOTE, "tables": tables}

    def graph_losses(self) -> dict[str, Any]:
        """What agents lose where they are not told the true graph."""
        tables = [self.matrix(env, table) for env, table in graph_loss_tables(self.board).items()]
        return {"id": "graph-loss", "title": "Without the true graph", "note": GRAPH_LOSS_NOTE, "tables": tables}

    def instances(self) -> dict[str, Any]:
        """What agents lose on systems that are turned."""
        tables = [self.matrix(env, table) for env, table in instance_tables(self.board).items()]
        return {"id": "instances", "title": "On instances", "note": INSTANCES_NOTE, "tables": tables}

    def env(self, env: str) -> dict[str, Any]:
        """What is shown of an environment."""
        name, runs = self.names.envs[env], self.runs.get(env, [])
        plots = list(self._curves(name, runs)) if runs else []
        chosen = choice_table(self.board, env)
        return {
            "id": f"env-{name}",
            "title": printable(env),
            "number": self.envs[printable(env)],
            "table": self.matrix(f"Means on {printable(env)}", env_table(self.board, env)),
            "plots": plots,
            "choices": self.matrix(f"Choices on {printable(env)}", chosen) if chosen.rows else None,
        }

    def _curves(self, name: str, runs: Sequence[Run]) -> Iterator[Plot]:
        """Every curve against rounds, and where the actions have costs against these."""
        axes: dict[str, type[Horizontal]] = (
            {"": Rounds, "-cost": CostPaid} if all(map(has_costs, runs)) else {"": Rounds}
        )
        for suffix, against in axes.items():
            of_costs = " Against the cost paid: a run counts with what it had reached by then." if suffix else ""
            chart = regret_chart(runs, self.names.styles, against)
            caption = f"{what_is_drawn(len({run.seed for run in runs}))}.{of_costs}"
            yield Plot(chart, f"regret{suffix}-{name}", caption)
            if (choices := choice_chart(runs, self.names.styles, against)) is not None:
                caption = f"Share of rounds 1 to t in which each target set or scope was chosen.{of_costs}"
                yield Plot(choices, f"choices{suffix}-{name}", caption, by_agent=False)

    def coverage(self) -> PageTable:
        """What became of every pair."""
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
