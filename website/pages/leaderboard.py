"""The page "Leaderboard": the best agent of each mode, and every suite with all agents that have played it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from cbo_gym.agent_registry.finding import find_agent, modes_of
from cbo_gym.agent_registry.labels import Spec
from cbo_gym.agent_registry.zoo import zoo
from cbo_gym.envs.registry import find_entry
from cbo_gym.evaluation.claims.tables import RunsByFile
from cbo_gym.evaluation.comparison.leaderboard import ALL_MODES, ENOUGH_SEEDS, Leaderboard, leaderboard
from cbo_gym.evaluation.comparison.provenance import provenance
from cbo_gym.evaluation.metrics.aggregate import MIN_SEEDS
from cbo_gym.evaluation.metrics.targets import has_targets
from cbo_gym.evaluation.report.markdown import escape
from cbo_gym.evaluation.report.plots import draw_targets
from cbo_gym.evaluation.report.tables import (
    GAP_NOTE,
    HEADS,
    SCORE_NOTE,
    SECONDS_NOTE,
    Table,
    gap_tables,
    graph_loss_tables,
    with_interval,
)
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.suites import Suite, load_all
from website.common.links import Links, marks_note
from website.common.markdown import fold, image, table
from website.common.notes import note
from website.common.svg import light_and_dark, svg_of
from website.pages import choice_evidence, which_method
from website.papers.figures import dots_svg
from website.papers.published import pairs_in_words, seeds_note, suite_runs, targets_path

LEADERBOARD = "leaderboard.md"


def leaderboard_pages(runs_by_file: RunsByFile, links: Links) -> dict[str, str]:
    """Return the page and its pictures, by their addresses in the site."""
    pictures, reading = dict[str, str](), note("reading", least_seeds=MIN_SEEDS)
    page = [
        "---\nhide: [toc]\n---",
        "# Leaderboard",
        "## Who is best at what",
        answers(runs_by_file, links),
        note("answers"),
        fold("How to read the tables", f"{SCORE_NOTE} {SECONDS_NOTE} {reading}\n\n{marks_note()}"),
    ]
    for suite in load_all():
        page += [f"## {suite.name}", f"{suite.title}. {suite.description}"]
        page += suite_part(suite, suite_runs(suite, runs_by_file), links, pictures)
    page += ["## Papers", f"{note('papers')} [All papers](papers/index.md)"]
    return {LEADERBOARD: "\n\n".join([*page, ""]), **pictures}


def answers(runs_by_file: RunsByFile, links: Links) -> str:
    """Return the short table of the page "Which method should I use?", from runs on seeds for publication."""
    runs = (run for runs in runs_by_file.values() for run in runs if choice_evidence.on_publication_seeds(run))
    return which_method.answers_table(
        choice_evidence.runs_table(runs),
        links.agent,
        lambda mode: f"[{mode}](which_method.md#{mode}-mode)",
        _head("seconds a round"),
    )


def _head(title: str) -> str:
    """Return the head of a column, with its explanation for readers who point at it."""
    return f'<abbr title="{HEADS[title]}">{title}</abbr>' if title in HEADS else title


def scores_of(board: Leaderboard, mode: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows of agents that have a rank in a mode, the best first, and the other rows.

    A rank needs enough seeds on all environments of the mode.
    """
    rows = board.overall.filter(pl.col("group") == mode).sort("iqm", descending=True, maintain_order=True)
    ranked = (pl.col("envs") == pl.col("of")) & ENOUGH_SEEDS
    return rows.filter(ranked).to_dicts(), rows.filter(~ranked).to_dicts()


def _scores_table(rows: Sequence[Mapping[str, Any]], links: Links, with_envs: bool) -> str:
    names = ("iqm", "average_score")
    header = ["agent", *(["environments"] if with_envs else []), "seeds"]
    header += [_head("interquartile mean"), _head("score of play"), _head("seconds a round")]
    body = [
        [
            links.agent(row["agent"]),
            *([f"{row['envs']} of {row['of']}"] if with_envs else []),
            " to ".join(dict.fromkeys([str(row["fewest_seeds"]), str(row["most_seeds"])])),
            *(escape(str(with_interval(row, name))) for name in names),
            f"{row['seconds']:.2g}",
        ]
        for row in rows
    ]
    return table(header, body)


def _chart(suite: Suite, mode: str, rows: Sequence[Mapping[str, Any]], pictures: dict[str, str]) -> str:
    """Draw the scores, add the picture to the others, and return the Markdown that shows it."""
    dots = {row["agent"]: (row["iqm"], row["iqm_low"], row["iqm_high"]) for row in rows}
    svg = dots_svg(f"{suite.name}, {mode} mode: {_count_of_environments(rows)}", dots)
    path = f"papers/pictures/scores-{suite.name}-{mode}"
    return _add_picture(path, svg, f"Scores of {suite.name} in {mode} mode", pictures)


def _add_picture(path: str, svg: str, alt: str, pictures: dict[str, str]) -> str:
    """Add a picture, for light pages and for dark ones, and return the Markdown that shows it."""
    pictures |= light_and_dark(path, svg)
    return image(path, alt)


def _count_of_environments(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the number of environments of a mode, in words, from any of its rows."""
    count = rows[0]["of"]
    return "1 environment" if count == 1 else f"{count} environments"


def suite_part(suite: Suite, runs: Sequence[Run], links: Links, pictures: dict[str, str]) -> list[str]:
    """Return the part of the page on a suite with these runs; its pictures are added to the others."""
    command = f"cbo-gym sweep runs/{suite.name} --suite {suite.name} -a '*'"
    if not any(run.status == "finished" and not run.unverified for run in runs):
        return [f"**Not run**: nothing of this suite is published. `{command}` plays it."]
    board = leaderboard(runs)
    # Paragraphs; runtime pictures; and, by their summaries, paragraphs that readers may unfold.
    parts, soon, folds = [], [], dict[str, list[str]]()
    modes = [group for group in board.groups if group != ALL_MODES]
    for mode in modes:
        ranked, unranked = scores_of(board, mode)
        environments = _count_of_environments(ranked or unranked)
        if len(modes) > 1:
            parts.append(f"### {suite.name}, {mode} mode")
        if ranked:
            chart = _chart(suite, mode, ranked, pictures) if len(ranked) > 1 else ""
            content = f"{chart}\n\n{_scores_table(ranked, links, with_envs=False)}"
            parts.append(f'<div class="board" markdown>\n\n{content}\n\n</div>')
        else:
            parts.append(f"No agent has played {MIN_SEEDS} seeds on all {environments}, so none are ranked.")
        if unranked:
            reason = (
                f"These have not played {MIN_SEEDS} seeds on all {environments}, so their numbers are not compared."
            )
            scores = _scores_table(unranked, links, with_envs=True)
            folds[f"Not ranked in {mode} mode: {len(unranked)}"] = [reason, scores]
        if timed := [run for run in board.runs if run.mode == mode and has_targets(run)]:
            svg, title = svg_of(draw_targets(timed)), f"{suite.name}, {mode} mode"
            soon.append(f"{mode.capitalize()} mode:\n\n{_add_picture(targets_path(suite, mode), svg, title, pictures)}")
    folds["How soon"] = [note("targets"), *soon] if soon else []
    if suite.metric == "gap":
        gaps = {escape(title): scores for title, scores in gap_tables(board).items()}
        folds["GAP and PA-GAP"] = _tables(GAP_NOTE, gaps, links)
    losses = {links.env(env): lost for env, lost in graph_loss_tables(board).items()}
    folds["Lost without the true graph"] = _tables(note("lost"), losses, links, left=2)
    folds["Not run"] = [not_run(suite, runs, links)]
    rules = (
        f"{suite.horizon or 'The registered'} rounds and {suite.seeds} seeds are asked for, compared by {suite.metric}."
    )
    folds["Where the numbers come from"] = [f"{rules} {seeds_note(suite)} From {escape(provenance(board))}"]
    lines = [fold(summary, "\n\n".join(paragraphs)) for summary, paragraphs in folds.items() if any(paragraphs)]
    return [*parts, '<div class="folds" markdown>\n\n' + "\n\n".join(lines) + "\n\n</div>"]


def _tables(about: str, tables: Mapping[str, Table], links: Links, left: int = 1) -> list[str]:
    """Return a paragraph and the tables, each below its title; empty without tables."""
    parts = [about] if tables else []
    for title, own in tables.items():
        rows = [[links.agent(agent), *map(escape, cells)] for agent, *cells in own.lines]
        parts += [f"**{title}**", table(own.header, rows, left)]
    return parts


def not_run(suite: Suite, runs: Sequence[Run], links: Links) -> str:
    """Return the agents, environments and pairs whose runs a suite lacks; empty if the suite is complete."""
    seeds: dict[tuple[str, str], set[int]] = defaultdict(set)
    for run in runs:
        if run.status == "finished" and not run.unverified:
            seeds[run.agent, run.env].add(run.seed)
    mode_of = {label: getattr(find_entry(Spec.parse(label).name), "mode", None) for label in suite.labels()}
    absent, pairs = [], []
    for name in zoo():
        modes = modes_of(find_agent(name))
        playable = [(name, label) for label, mode in mode_of.items() if mode in modes]
        if any(pair in seeds for pair in playable):
            pairs += playable
        elif playable:
            absent.append(name)
    missing = [pair for pair in pairs if pair not in seeds]
    incomplete = [len(seeds[pair]) for pair in pairs if pair in seeds and len(seeds[pair]) < suite.seeds]
    shorter = sorted({(run.env, run.horizon) for run in runs if run.horizon < suite.rounds(run.env)})
    failed = sorted({(run.agent, run.env) for run in runs if run.status == "failed"})
    lines = []
    if absent:
        lines.append(f"* agents that play a mode of it: {', '.join(links.agent(name) for name in absent)};")
    lines += [f"* {words};" for words in pairs_in_words(missing)]
    if incomplete:
        lines.append(
            f"* all {suite.seeds} seeds of {len(incomplete)} pairs of an agent and an environment: the fewest are "
            f"{min(incomplete)};"
        )
    if shorter:
        names = ", ".join(f"{env.removeprefix('CBO/')} ({horizon})" for env, horizon in shorter)
        lines.append(f"* all rounds of {escape(names)};")
    if failed:
        lines.append(f"* failed runs: {escape(', '.join(f'{agent} on {env}' for agent, env in failed))};")
    return "\n".join(lines)[:-1] + "." if lines else ""
