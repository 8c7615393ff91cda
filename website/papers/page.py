"""A paper's page: each figure and table, published and ours, its claims judged, and the departures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from cbo_gym.agent_registry.labels import Spec, matches
from cbo_gym.agent_registry.zoo import zoo
from cbo_gym.evaluation.compare.provenance import mixtures
from cbo_gym.evaluation.metrics.aggregate import half_width
from cbo_gym.evaluation.report.markdown import escape
from cbo_gym.evaluation.report.tables import MISSING, number
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.runs.revisions import is_current
from cbo_gym.evaluation.suites import Suite, load
from cbo_gym.task import Mode
from website.common.parts import (
    CLOCK_NOTE,
    LEAST_SEEDS,
    TARGETS_NOTE,
    agent_link,
    env_link,
    fold,
    group_labels,
    image,
    own_runs,
    pairs_of,
    targets_path,
)
from website.common.tables import table
from website.pages.agents import DocumentedAgent
from website.papers.claim_tables import claims_part
from website.papers.contents import NUMBERS, QUANTITIES, TIMES, Exhibit, Paper, Quantity, quantity_of, run_seconds
from website.papers.figures import Printed, chosen_svg, curve_of, curves_svg

CHOSEN = "-chosen"  # ends the name of a picture's file


def paper_page(
    paper: Paper, parts: Mapping[str, Sequence[Run]], others: Collection[str] = (), drawn: Collection[str] = ()
) -> str:
    """All figures and tables of a paper, published and ours, its claims judged, and the departures.

    Args:
        paper: the paper.
        parts: the published runs, by the names of their files.
        others: addresses of other pages, which are linked.
        drawn: addresses of the leaderboard's pictures.
    """
    suite, own = load(paper.suite), own_runs(paper, parts)
    linked = f" [{paper.link.removeprefix('https://')}]({paper.link})" if paper.link else ""
    shown = [
        f'---\ntitle: "{paper.title}"\nhide: [toc]\n---',
        f"# {paper.title}",
        f"{paper.authors}.{linked}",
        *claims_part(paper, own, others),
    ]
    for exhibit in paper.exhibits:
        shown += [f"## {exhibit.name}", exhibit.shows, *_exhibit(exhibit, own, paper, others)]
    shown += [
        *_how_soon(suite, drawn),
        "## Departures",
        *_departures(paper, others),
        "## How it was played",
        *_how(paper, suite, own),
    ]
    return "\n\n".join([*shown, ""])


def _exhibit(exhibit: Exhibit, runs: Sequence[Run], paper: Paper, others: Collection[str]) -> list[str]:
    parts = [f"**Published**: {exhibit.published}"] if exhibit.published else []
    if exhibit.drawn:
        parts += [f"![{exhibit.name}](../pictures/{exhibit.drawn})", f"Drawn by `{exhibit.drawn_by}`."]
    if exhibit.quantity is None:
        return parts
    columns = [(env, after) for env in exhibit.environments for after in exhibit.rounds or [None]]
    played = _runs_by_cell(exhibit, runs)
    header = ["method", *(_column(env, after, exhibit, others) for env, after in columns)]
    rows = []
    for agent in exhibit.agents:
        if agent in exhibit.theirs:
            rows.append([f"{escape(agent)}, published", *exhibit.theirs[agent]])
        cells = [_cell(played[agent, env], exhibit.quantity, after) for env, after in columns]
        rows.append([agent_link(agent, "../", others) + (", ours" if exhibit.theirs else ""), *cells])
    when = "" if exhibit.rounds else ", after the last round"
    title = f"{QUANTITIES[exhibit.quantity]}{when}: mean ± half the 95 % interval"
    clock = f" {CLOCK_NOTE}" if exhibit.quantity in TIMES else ""
    skipped = {(run.agent, run.env) for run in runs if run.status == "skipped"}
    missing = [pair for pair, cell in played.items() if not cell and pair not in skipped]
    parts += [f"{title} (seeds).{clock}", table(header, rows)]
    if _is_drawn(exhibit, played):
        parts.append(_image(paper, exhibit))
    if _choosing(exhibit, played):
        parts += ["How often each was chosen up to a round, of all rounds so far:", _image(paper, exhibit, CHOSEN)]
    if len(missing) == len(played):
        return [*parts[: None if exhibit.theirs else -2], "**Not run**: the store has no run of it."]
    if missing:
        pairs = [pairs_of(agent, labels) for agent, labels in group_labels(missing).items()]
        parts.append(f"**Not run**: {'; '.join(pairs)}.")
    return parts


def _runs_by_cell(exhibit: Exhibit, runs: Sequence[Run]) -> dict[tuple[str, str], list[Run]]:
    """Method and environment -> the finished runs, of which those with most rounds count."""
    played = {}
    for agent in exhibit.agents:
        for env in exhibit.environments:
            finished = (run for run in runs if run.agent == agent and run.status == "finished")
            own = [run for run in finished if run.env == env or ("*" in env and matches(run.env, [env]))]
            longest = max((run.horizon for run in own), default=0)
            played[agent, env] = [run for run in own if run.horizon == longest]
    return played


def _is_drawn(exhibit: Exhibit, played: Mapping[tuple[str, str], Sequence[Run]]) -> bool:
    """Whether there is a curve, not only a recommendation after the last round."""
    quantity = exhibit.quantity
    if quantity is None or quantity in NUMBERS:
        return False
    return any(np.isfinite(curve_of(run, quantity)).sum() > 1 for cell in played.values() for run in cell[:1])


def _choosing(exhibit: Exhibit, played: Mapping[tuple[str, str], Sequence[Run]]) -> dict[str, Sequence[Run]]:
    """The methods with several choices and their runs, if the exhibit shows the choices."""
    if not exhibit.chosen:
        return {}
    return {agent: runs for (agent, _), runs in played.items() if runs and len(np.unique(runs[0].table["choice"])) > 1}


def pictures(exhibit: Exhibit, runs: Sequence[Run]) -> dict[str, str]:
    """Ending of the file's name -> SVG: the curves of an exhibit, and the choices, if there are any."""
    played, svgs = _runs_by_cell(exhibit, runs), {}
    if _is_drawn(exhibit, played):
        assert exhibit.quantity is not None  # else nothing is drawn
        title = QUANTITIES[exhibit.quantity].replace("\\*", "*")
        svgs[""] = curves_svg(played, exhibit.quantity, title, exhibit.names, printed_numbers(exhibit))
    if choosing := _choosing(exhibit, played):
        svgs[CHOSEN] = chosen_svg(choosing)
    return svgs


def printed_numbers(exhibit: Exhibit) -> dict[tuple[str, str], list[Printed]]:
    """Method and environment -> the numbers that the paper prints of a curve, unless it prints final ones only."""
    columns = [(env, after) for env in exhibit.environments for after in exhibit.rounds]
    numbers: dict[tuple[str, str], list[Printed]] = defaultdict(list)
    for agent, cells in exhibit.theirs.items():
        for (env, after), cell in zip(columns, cells, strict=False):
            mean, _, half = cell.partition("±")
            numbers[agent, env].append(Printed(after, float(mean), float(half or 0.0)))
    return numbers


def picture_path(paper: Paper, exhibit: Exhibit, ending: str = "") -> str:
    """The path of an exhibit's picture in the site, without its ending."""
    return f"papers/pictures/{paper.suite}-{paper.exhibits.index(exhibit)}{ending}"


def _image(paper: Paper, exhibit: Exhibit, ending: str = "") -> str:
    return image(picture_path(paper, exhibit, ending).removeprefix("papers/"), f"{exhibit.name}: ours")


def _how_soon(suite: Suite, drawn: Collection[str]) -> list[str]:
    """Runtime-to-target curves over all environments of the paper, as the leaderboard has them."""
    paths = {mode: targets_path(suite, mode) for mode in Mode}
    available = {mode: path for mode, path in paths.items() if f"{path}.svg" in drawn}
    shown = [
        f"{mode.capitalize()} mode:\n\n{image(path.removeprefix('papers/'), f'How soon, {mode} mode')}"
        for mode, path in available.items()
    ]
    return ["## How soon", TARGETS_NOTE, *shown] if shown else []


def _column(env: str, after: int | None, exhibit: Exhibit, others: Collection[str]) -> str:
    if len(exhibit.environments) == 1 and after is not None:
        return f"{after} rounds"
    name = escape(exhibit.names[env]) if exhibit.called else env_link(env, "../", others)
    return name + (f", {after} rounds" if after is not None else "")


def _cell(runs: Sequence[Run], quantity: Quantity, after: int | None) -> str:
    """Mean, half the interval and the number of runs."""
    if not runs or (after or 1) > runs[0].horizon:
        return MISSING
    values = np.array([quantity_of(run, quantity, after or run.horizon) for run in runs])
    values = values[~np.isnan(values)]
    if not len(values):
        return MISSING
    half = float(half_width(values))
    return f"{escape(str(number(float(values.mean()), None if np.isnan(half) else half)))} ({len(values)})"


def _departures(paper: Paper, others: Collection[str]) -> list[str]:
    """Departures of the methods, as their pages list them."""
    names = list(dict.fromkeys(Spec.parse(label).name for label in paper.agents))
    parts = ["Departures of these methods from their papers, from the pages of the methods."]
    for name in names:
        departures = DocumentedAgent(name, zoo()[name]).departures.replace("](", "](../agents/")
        parts += [f"**{agent_link(name, '../', others)}**", departures]
    return parts


def _provenance(runs: Sequence[Run]) -> str:
    """Runs, seeds, versions, days and machines."""
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


def _codes(runs: Sequence[Run]) -> str:
    """The numbers of runs of today's revisions and of earlier ones."""
    others = sum(not is_current(run) for run in runs)
    counts = f"{len(runs) - others} of {len(runs)} runs are of today's revisions"
    return f"{counts}; {others} are of earlier ones, and count with them." if others else f"{counts}."


def _how(paper: Paper, suite: Suite, runs: Sequence[Run]) -> list[str]:
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
    few = sum(len(numbers) < LEAST_SEEDS for numbers in seeds.values())
    rounds = sorted({run.horizon for run in finished})
    shorter = [horizon for horizon in rounds if horizon < paper.rounds]
    source = f"{_provenance(finished)} The agents' own time: {hours:.2g} hours, by the clock."
    mixed = [f"{sentence}." for sentence in mixtures(finished)]
    parts += [_codes(finished), fold("Where our numbers come from", escape(" ".join([source, *mixed])))]
    if shorter:
        parts.append(f"Fewer rounds than the paper's, for want of time: {', '.join(map(str, shorter))}.")
    if few:
        parts.append(f"{few} of {len(seeds)} pairs of an agent and an environment have fewer than {LEAST_SEEDS} seeds.")
    return parts
