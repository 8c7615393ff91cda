"""A paper's page: its figures and tables with our runs, the verdicts on its claims, and our departures from it.

An *exhibit* is a figure or table of the paper; its environments, methods and printed numbers are in
``cbo_gym/evaluation/claims/data``.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence

import numpy as np
import polars as pl

from cbo_gym._util.files import csv_of
from cbo_gym.agent_registry.labels import Spec, matches
from cbo_gym.agent_registry.zoo import zoo
from cbo_gym.evaluation.claims.papers import Exhibit, Paper, Quantity
from cbo_gym.evaluation.claims.tables import RunsByFile, claims_csv, judge_claims, paper_runs
from cbo_gym.evaluation.comparison.provenance import mixtures
from cbo_gym.evaluation.metrics.aggregate import MIN_SEEDS, half_width
from cbo_gym.evaluation.report.markdown import escape
from cbo_gym.evaluation.report.tables import MISSING, number
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.runs.revisions import is_current
from cbo_gym.evaluation.suites import Suite, load
from cbo_gym.task import Mode
from website.common.agents import DocumentedAgent
from website.common.links import Links
from website.common.markdown import fold, image, table
from website.common.notes import note
from website.common.svg import light_and_dark
from website.papers.claim_tables import claims_part
from website.papers.figures import Printed, chosen_svg, curve_of, curves_svg
from website.papers.published import pairs_in_words, targets_path
from website.papers.quantities import NUMBERS, QUANTITIES, TIMES, quantity_of, run_seconds

#: Columns of the numbers of an exhibit; ``rounds`` is null for the last.
NUMBER_SCHEMA = {
    **dict.fromkeys(["method", "environment"], pl.String),
    **{"rounds": pl.Int64, "mean": pl.Float64, "half_interval": pl.Float64, "seeds": pl.Int64, "published": pl.String},
}
CHOSEN = "-chosen"  # ends the name of a picture's file


def paper_pages(
    paper: Paper, runs_by_file: RunsByFile, links: Links, picture_pages: Collection[str] = ()
) -> dict[str, str]:
    """Return a paper's page, its pictures and its numbers, by their addresses in the site.

    Args:
        paper: the paper.
        runs_by_file: the published runs, by the names of their files.
        links: links from the page.
        picture_pages: addresses of the leaderboard's pictures.
    """
    suite, runs, files = load(paper.suite), paper_runs(paper, runs_by_file), dict[str, str]()
    claims = judge_claims(paper, runs)
    linked = f" [{paper.link.removeprefix('https://')}]({paper.link})" if paper.link else ""
    content = [
        f'---\ntitle: "{paper.short}"\n---',
        f"# {paper.title}",
        f"{paper.authors}.{linked}",
        *claims_part(paper, claims, links),
    ]
    for exhibit in paper.exhibits:
        content += [f"## {exhibit.name}", exhibit.shows, *_exhibit(exhibit, runs, paper, links, files)]
    content += [*_how_soon(suite, picture_pages), "## Departures", *_departures(paper, links)]
    content += ["## How it was played", *_how_played(paper, suite, runs)]
    return {paper.page: "\n\n".join([*content, ""]), f"papers/{paper.suite}-claims.csv": claims_csv(claims), **files}


def _exhibit(exhibit: Exhibit, runs: Sequence[Run], paper: Paper, links: Links, files: dict[str, str]) -> list[str]:
    """Return the part of the page on an exhibit; its pictures and its numbers are added to the other files."""
    parts = [f"**Published**: {exhibit.published}"] if exhibit.published else []
    if exhibit.picture:
        parts += [f"![{exhibit.name}](../pictures/{exhibit.picture})", f"Drawn by `{exhibit.picture_command}`."]
    if exhibit.quantity is None:
        return parts
    columns = [(env, after) for env in exhibit.environments for after in exhibit.rounds or [None]]
    runs_of_cell = _runs_by_cell(exhibit, runs)
    header = ["method", *(_column(env, after, exhibit, links) for env, after in columns)]
    rows, records = [], []
    for agent in exhibit.agents:
        printed_cells = exhibit.published_numbers.get(agent, [""] * len(columns))
        if agent in exhibit.published_numbers:
            rows.append([f"{escape(agent)}, published", *printed_cells])
        values = [_values(runs_of_cell[agent, env], exhibit.quantity, after) for env, after in columns]
        rows.append([links.agent(agent) + (", ours" if exhibit.published_numbers else ""), *map(_cell, values)])
        for (env, after), ours, printed in zip(columns, values, printed_cells, strict=True):
            mean, half = (float(ours.mean()), float(half_width(ours))) if len(ours) else (None, None)
            records.append((agent, env, after, mean, half, len(ours), printed))
    when = "" if exhibit.rounds else ", after the last round"
    title = f"{QUANTITIES[exhibit.quantity]}{when}: mean ± half the 95 % interval"
    clock = f" {note('clock')}" if exhibit.quantity in TIMES else ""
    skipped = {(run.agent, run.env) for run in runs if run.status == "skipped"}
    missing = [pair for pair, cell in runs_of_cell.items() if not cell and pair not in skipped]
    name = f"{paper.suite}-{paper.exhibits.index(exhibit)}"
    files[f"papers/{name}.csv"] = csv_of(pl.DataFrame(records, NUMBER_SCHEMA, orient="row").fill_nan(None))
    parts += [f"{title} (seeds).{clock}", table(header, rows), f"[These numbers as CSV]({name}.csv)"]
    for ending, svg in pictures(exhibit, runs).items():
        path = f"pictures/{name}{ending}"
        files |= light_and_dark(f"papers/{path}", svg)
        about = ["How often each was chosen up to a round, of all rounds so far:"] if ending == CHOSEN else []
        parts += [*about, image(path, f"{exhibit.name}: ours")]
    if len(missing) == len(runs_of_cell):
        # Without printed numbers the table is empty, so leave it out.
        parts = parts if exhibit.published_numbers else parts[:-3]
        return [*parts, "**Not run**: the store has no run of it."]
    if missing:
        parts.append(f"**Not run**: {'; '.join(pairs_in_words(missing))}.")
    return parts


def _runs_by_cell(exhibit: Exhibit, runs: Sequence[Run]) -> dict[tuple[str, str], list[Run]]:
    """Return method and environment -> the finished runs with the most rounds."""
    runs_of_cell = {}
    for agent in exhibit.agents:
        for env in exhibit.environments:
            finished = (run for run in runs if run.agent == agent and run.status == "finished")
            on_env = [run for run in finished if run.env == env or ("*" in env and matches(run.env, [env]))]
            longest = max((run.horizon for run in on_env), default=0)
            runs_of_cell[agent, env] = [run for run in on_env if run.horizon == longest]
    return runs_of_cell


def pictures(exhibit: Exhibit, runs: Sequence[Run]) -> dict[str, str]:
    """Return ending of the file's name -> SVG: the curves of an exhibit, and the choices, if there are any."""
    runs_of_cell, quantity, svgs = _runs_by_cell(exhibit, runs), exhibit.quantity, {}
    first = [cell[0] for cell in runs_of_cell.values() if cell]
    # Draw a curve if there are values before the last round.
    if quantity and quantity not in NUMBERS and any(np.isfinite(curve_of(run, quantity)).sum() > 1 for run in first):
        title = QUANTITIES[quantity].replace("\\*", "*")
        svgs[""] = curves_svg(runs_of_cell, quantity, title, exhibit.names, printed_numbers(exhibit))
    choosing = {run.agent for run in first if exhibit.with_choices and len(np.unique(run.table["choice"])) > 1}
    if choosing:
        svgs[CHOSEN] = chosen_svg({agent: cell for (agent, _), cell in runs_of_cell.items() if agent in choosing})
    return svgs


def printed_numbers(exhibit: Exhibit) -> dict[tuple[str, str], list[Printed]]:
    """Return method and environment -> printed numbers of the curve; empty if the paper prints only final numbers."""
    columns = [(env, after) for env in exhibit.environments for after in exhibit.rounds]
    numbers: dict[tuple[str, str], list[Printed]] = defaultdict(list)
    for agent, cells in exhibit.published_numbers.items():
        for (env, after), cell in zip(columns, cells, strict=False):
            mean, _, half = cell.partition("±")
            numbers[agent, env].append(Printed(after, float(mean), float(half or 0.0)))
    return numbers


def _how_soon(suite: Suite, picture_pages: Collection[str]) -> list[str]:
    """Return runtime-to-target curves over all environments of the paper, as the leaderboard has them."""
    pictures = []
    for mode in Mode:
        if f"{(path := targets_path(suite, mode))}.svg" in picture_pages:
            pictures += [f"{mode.capitalize()} mode:", image(path.removeprefix("papers/"), f"How soon, {mode} mode")]
    return ["## How soon", note("targets"), *pictures] if pictures else []


def _column(env: str, after: int | None, exhibit: Exhibit, links: Links) -> str:
    if len(exhibit.environments) == 1 and after is not None:
        return f"{after} rounds"
    name = escape(exhibit.names[env]) if exhibit.environment_names else links.env(env)
    return name + (f", {after} rounds" if after is not None else "")


def _values(runs: Sequence[Run], quantity: Quantity, after: int | None) -> np.ndarray:
    """Return the known values of the runs."""
    long = [run for run in runs if run.horizon >= (after or 1)]
    values = np.array([quantity_of(run, quantity, after or run.horizon) for run in long])
    return values[~np.isnan(values)]


def _cell(values: np.ndarray) -> str:
    """Return mean, half the interval and the number of runs."""
    if not len(values):
        return MISSING
    half = float(half_width(values))
    return f"{escape(str(number(float(values.mean()), None if np.isnan(half) else half)))} ({len(values)})"


def _departures(paper: Paper, links: Links) -> list[str]:
    """Return departures of the methods, as their pages list them."""
    names = list(dict.fromkeys(Spec.parse(label).name for label in paper.agents))
    parts = ["Departures of these methods from their papers, from the pages of the methods."]
    for name in names:
        departures = DocumentedAgent(name, zoo()[name]).departures.replace("](", "](../agents/")
        parts += [f"**{links.agent(name)}**", departures]
    return parts


def _provenance(runs: Sequence[Run]) -> str:
    """Return runs, seeds, versions, days and machines."""
    days = sorted({run.date.partition("T")[0] for run in runs if run.date})
    rounds = map(str, sorted({run.horizon for run in runs}))
    facts = [
        f"{len(runs)} finished runs of {' or '.join(rounds)} rounds",
        f"{len({run.seed for run in runs})} seeds",
        f"cbo-gym {' and '.join(sorted({run.version for run in runs}))}",
        *([" to ".join(dict.fromkeys([days[0], days[-1]]))] if days else []),
        *sorted({run.machine for run in runs if run.machine}),
    ]
    return "; ".join(facts) + "."


def _how_played(paper: Paper, suite: Suite, runs: Sequence[Run]) -> list[str]:
    commands = [
        f"python -m website.papers.runs {suite.name} --play",
        f"cbo-gym publish runs/pages/{suite.name} --suite {suite.name}",
    ]
    parts = [
        "The runs of this page, on seeds and instances for publication, are played by",
        "\n".join(["```sh", *commands, "```"]),
        f"The paper has {paper.rounds} rounds and {paper.seeds} seeds.",
    ]
    finished = [run for run in runs if run.status == "finished"]
    if not finished:
        return [*parts, "**Not run**: nothing of this paper is published yet."]
    hours = sum(map(run_seconds, finished)) / 3600
    seeds: dict[tuple[str, str, int], set[int]] = defaultdict(set)
    for run in finished:
        seeds[run.agent, run.env, run.horizon].add(run.seed)
    with_few_seeds = sum(len(numbers) < MIN_SEEDS for numbers in seeds.values())
    rounds = sorted({run.horizon for run in finished})
    shorter = [horizon for horizon in rounds if horizon < paper.rounds]
    source = f"{_provenance(finished)} The agents' own time: {hours:.2g} hours, by the clock."
    mixed = [f"{sentence}." for sentence in mixtures(finished)]
    earlier = sum(not is_current(run) for run in finished)
    revisions = f"{len(finished) - earlier} of {len(finished)} runs are of today's revisions"
    revisions += f"; {earlier} are of earlier ones, and count with them." if earlier else "."
    parts += [revisions, fold("Where our numbers come from", escape(" ".join([source, *mixed])))]
    if shorter:
        parts.append(f"Fewer rounds than the paper's, to save time: {', '.join(map(str, shorter))}.")
    if with_few_seeds:
        parts.append(
            f"{with_few_seeds} of {len(seeds)} pairs of an agent and an environment have fewer than {MIN_SEEDS} seeds."
        )
    return parts
