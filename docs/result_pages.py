"""The pages of results: the leaderboard of every suite, and one page per paper, from the published results.

Nothing of them is kept: they are written from ``results`` whenever the site is built, ``docs/papers`` says what each
paper shows and claims, and what agents are told beyond spaces, graph and initial data is in ``docs/told.yaml``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import agent_pages
import choice_evidence
import method_choice
import numpy as np
import polars as pl
from claims import Claim, Judgement, Pairs, Regret, Rules, judge, none_dominates, together
from environment_pictures import dark, svg_of
from paper_figures import Dot, Printed, chosen_svg, curve_of, curves_svg, dots_svg
from pydantic import Field, ValidationError
from verdicts import Kind

from cbo_gym.agents.zoo import zoo
from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.compare.leaderboard import ALL_MODES, Leaderboard, leaderboard
from cbo_gym.evaluation.metrics.aggregate import half_width
from cbo_gym.evaluation.metrics.gap import mean_slice_gap
from cbo_gym.evaluation.metrics.targets import has_targets
from cbo_gym.evaluation.report.gap_tables import GAP_NOTE, gap_tables
from cbo_gym.evaluation.report.graph_loss import graph_loss_tables
from cbo_gym.evaluation.report.markdown import escape
from cbo_gym.evaluation.report.tables import HEADS, MISSING, SCORE_NOTE, SECONDS_NOTE, number, provenance, with_interval
from cbo_gym.evaluation.report.targets import draw_targets
from cbo_gym.evaluation.runs.counted import newest
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.store.published import load_published, own_store
from cbo_gym.evaluation.verify.submission import read_card
from cbo_gym.registry import find_entry
from cbo_gym.seed_ranges import PUBLICATION
from cbo_gym.specs import Spec, matches, modes_of
from cbo_gym.suites import Suite, load, load_all
from cbo_gym.task import Mode
from cbo_gym.validation import StrictModel, field_errors
from cbo_gym.yaml_files import read_yaml

DOCS = Path(__file__).parent
LEADERBOARD = "leaderboard.md"
LEAST_SEEDS = 5
MOST_LISTED = 12
Quantity = Literal[
    "average_reward", "best_reward", "average_regret", "simple_regret", "average_pseudo_regret", "run_seconds",
    "run_minutes", "gap_over_time", "feasible_share", "lacking", "best_so_far_regret", "gd_plus", "igd_plus",
]  # fmt: skip
QUANTITIES: dict[Quantity, str] = {
    "average_reward": "Average expected reward over the rounds so far",
    "best_reward": "Best expected reward of the actions so far",
    "average_regret": "Average regret over the rounds so far",
    "simple_regret": "Regret of the recommended action",
    "average_pseudo_regret": "Mean of mu\\* - y over the rounds so far",
    "run_seconds": "Seconds of a run",
    "run_minutes": "Minutes of a run",
    "gap_over_time": "G_t, mean over the slices",
    "feasible_share": "Share of rounds with a feasible action",
    "lacking": "Regret of the best feasible action, 1 for a random one",
    "best_so_far_regret": "Regret of the best so far",
    "gd_plus": "GD+ of what is recommended",
    "igd_plus": "IGD+ of what is recommended",
}


def run_seconds(run: Run) -> float:
    """The agent's own time."""
    return run.reset_seconds + run.seconds_a_round * run.horizon


#: numbers of whole runs, which have no curve
NUMBERS: dict[Quantity, Callable[[Run], float]] = {
    "run_seconds": run_seconds,
    "run_minutes": lambda run: run_seconds(run) / 60.0,
    "gap_over_time": mean_slice_gap,
    "feasible_share": lambda run: float(np.mean(run.table["feasible"].to_numpy())),
    "lacking": lambda run: float(run.table["best_so_far_regret"][-1]) / (run.optimum - run.random_value),
}
REGRETS: dict[Regret, str] = {
    "average_regret": "average regret",
    "best_so_far_regret": "regret of the best action so far",
    "simple_regret": "regret of the recommendation",
    "average_pseudo_regret": "mean of mu\\* - y",
    "missing_gap_over_time": "what G_t lacks of 1",
}
#: what agents may be told beyond spaces, graph and initial data: its mark, and what it is
TOLD = {
    "noise": ("n", "the distributions of the noise, or whether there is any"),
    "composition": ("c", "the reward as a function of the other variables"),
    "kernel": ("k", "the kernel from which the reward function is drawn"),
    "signal_family": ("s", "the family of the signals' distributions"),
    "signal_range": ("r", "an interval that holds the signals"),
    "components": ("f", "the functions that equations are made of"),
}
CLAIMS_NOTE = (
    "Differences are of regrets, the second method's minus the first one's, over the same seeds, as shares of what "
    "lies between the optimum and a random action, with 95 % intervals: the wider of Student's and of Johnson's for "
    "skewed differences. Those of G_t are differences of it. What a claim says, by which number, on how many pairs and "
    "with which margin was written before its runs. *Better* is confirmed by an interval above 0 and refuted by one "
    "below 0, and the methods are equivalent if it lies within the margin; *as good* is confirmed by an interval above "
    "minus the margin. It is open otherwise, and with fewer pairs than it asks for; not run says that there is no "
    "pair. Corrected counts are those of claims that hold if all of the page are to be right together (Holm)."
)
TARGETS_NOTE = (
    "The share of runs whose best action so far had the score, each environment counting alike, against rounds and "
    "against the agent's own seconds."
)
LOST_NOTE = (
    "Scores with the true graph less those without, seed by seed, with half the width of the 95 % t-interval: of the "
    "recommendation after the last round, and of play."
)
Text = Annotated[str, Field(min_length=1)]


# What papers show --------------------------------------------------------------------------------------------


class Said(StrictModel):
    """A claim of one method over others, as a paper words it, or one of ours."""

    said: Text
    better: Text
    worse: Annotated[list[str], Field(min_length=1)]
    envs: Annotated[list[str], Field(min_length=1)]
    ours: bool = False
    kind: Kind = "better"
    rules: Rules | None = None
    first_look: Pairs | None = None
    worse_env: str = ""
    by: Regret = "average_regret"
    after: int | None = None

    def claims(self, rules: Rules) -> list[Claim]:
        """One for each of the others, by its own rules if it has any."""
        same = self.model_dump(exclude={"said", "ours", "better", "worse", "rules"})
        return [Claim(better=self.better, worse=one, rules=self.rules or rules, **same) for one in self.worse]


class Exhibit(StrictModel):
    """A figure or table of a paper.

    Attributes:
        name, shows: which, and what is in it.
        published: what can be read off where there are no numbers.
        quantity: that it shows.
        environments: on which, as labels, or patterns of instances that are taken together.
        called: what they are called in table and picture, one a label; empty for the labels.
        agents: who plays.
        verbatim: see :class:`Paper`; in place of the paper's where there are any.
        rounds: after which; the last without any.
        theirs: printed numbers, agent -> one a column of our table.
        claims: what the paper says of it.
        chosen: whether it shows what was chosen too, on its one environment.
        none_dominates: that no method is the best on all of the environments, by this regret.
        missing: why nothing of it is here, where nothing can be.
    """

    name: Text
    shows: Text
    published: str = ""
    quantity: Quantity | None = None
    environments: list[str] = []
    called: list[str] = []
    agents: list[str] = []
    verbatim: dict[str, str] = {}
    rounds: list[int] = []
    theirs: dict[str, list[str]] = {}
    claims: list[Said] = []
    chosen: bool = False
    none_dominates: Regret | None = None
    missing: str = ""

    @property
    def names(self) -> dict[str, str]:
        """Environment -> what it is called, where it is not by its label."""
        return dict(zip(self.environments, self.called, strict=True)) if self.called else {}


class Paper(StrictModel):
    """The contents of a paper's page.

    Attributes:
        suite: of ``suites.yaml``, whose name the page has.
        title, authors, link: of the paper.
        setting: how the paper's experiments are made, and in what ours differ by themselves.
        rounds, seeds: of the paper.
        rules: how its claims are judged.
        verbatim: label of an agent -> label with the paper's own parameters, where our defaults are others. The
            paper's claims are judged on the latter, and a second time, as claims of ours, on the defaults.
        agents: labels whose departures the page lists, and that its sweep plays.
        sweep: the command, where it is not that of the suite.
        exhibits: in the paper's order.
    """

    suite: Text
    title: Text
    authors: Text
    link: str = ""
    setting: Text
    rounds: int
    seeds: int
    rules: Rules = Rules()
    verbatim: dict[str, str] = {}
    agents: Annotated[list[str], Field(min_length=1)]
    sweep: str = ""
    exhibits: Annotated[list[Exhibit], Field(min_length=1)]

    @property
    def page(self) -> str:
        return f"papers/{self.suite}.md"


@cache
def papers() -> tuple[Paper, ...]:
    """All of ``docs/papers``, by the order of the suites.

    Raises:
        ValueError: if a file is wrong.
    """
    order = [suite.name for suite in load_all()]
    found = [_paper(path) for path in sorted((DOCS / "papers").glob("*.yaml"))]
    return tuple(sorted(found, key=lambda paper: order.index(paper.suite)))


def _paper(path: Path) -> Paper:
    try:
        return _with_verbatim(Paper.model_validate(read_yaml(path)))
    except ValidationError as error:
        raise ValueError(f"{path}: {field_errors(error, Paper)}") from error
    except ArgumentError as error:
        raise ValueError(f"{path}: {error}") from error


def _with_verbatim(paper: Paper) -> Paper:
    """With the paper's own settings of methods among the agents, and its claims on these and on the defaults."""
    exhibits = []
    for exhibit in paper.exhibits:
        own = exhibit.verbatim or paper.verbatim
        claims = [one for said in exhibit.claims for one in _on_both(said, own)]
        exhibits.append(exhibit.model_copy(update={"agents": _both(exhibit.agents, own), "claims": claims}))
    played = [agent for exhibit in exhibits for agent in exhibit.agents]
    agents = list(dict.fromkeys([*paper.agents, *(agent for agent in played if agent in paper.verbatim.values())]))
    return paper.model_copy(update={"exhibits": exhibits, "agents": agents})


def _both(agents: Iterable[str], verbatim: Mapping[str, str]) -> list[str]:
    return list(dict.fromkeys(one for agent in agents for one in (agent, verbatim.get(agent, agent))))


def _on_both(said: Said, verbatim: Mapping[str, str]) -> list[Said]:
    """A paper's claim on its own settings, and as one of ours on the defaults where these differ."""
    if said.ours:
        return [said]
    worse = [verbatim.get(agent, agent) for agent in said.worse]
    own = said.model_copy(update={"better": verbatim.get(said.better, said.better), "worse": worse})
    return [own] if own == said else [own, said.model_copy(update={"ours": True})]


@cache
def told() -> dict[str, list[str]]:
    """Agent -> what it uses of tasks beyond spaces, graph and initial data; of submitted ones as their cards say."""
    cards = [read_card(path) for path in sorted(own_store().glob("*.yaml"))]
    return read_yaml(DOCS / "told.yaml") | {card.agent: list(card.told) for card in cards}


# Pages -------------------------------------------------------------------------------------------------------


def on_config(config: Any) -> Any:
    """MkDocs asks: the section of results has one page per paper."""
    for entry in config.nav:
        if "Results" in entry:
            entry["Results"] = navigation(entry["Results"])
    return config


def navigation(others: Sequence[Any]) -> list[Any]:
    return [{"Leaderboard": LEADERBOARD}, {"Papers": [{_short(paper): paper.page} for paper in papers()]}, *others]


def _short(paper: Paper) -> str:
    return paper.title


def on_files(files: Any, config: Any) -> Any:
    """MkDocs asks: the pages are files of the site."""
    from mkdocs.structure.files import File  # late: the tests of the pages do without MkDocs

    known = {file.src_uri for file in files} | {f"agents/{name}.md" for name in zoo()}
    for uri, content in pages(published_parts(), known).items():
        files.append(File.generated(config, uri, content=content))
    return files


def published_parts() -> dict[str, list[Run]]:
    """Name of a file -> its runs, of the checkout's published results; without those of the README's table."""
    files = [path for path in sorted(own_store().glob("*.parquet")) if path.stem != choice_evidence.SHOWCASE]
    return {path.stem: load_published(path) for path in files}


def pages(parts: Mapping[str, Sequence[Run]], others: Collection[str] = ()) -> dict[str, str]:
    """Address in the site -> Markdown, or a picture.

    Args:
        parts: the published runs, by the names of their files.
        others: addresses of other pages, which are linked.
    """
    found = leaderboard_pages(parts, others)
    for paper in papers():
        found[paper.page] = paper_page(paper, parts, others)
        for exhibit in paper.exhibits:
            for ending, svg in pictures(exhibit, _own_runs(paper, parts)).items():
                found[picture_path(paper, exhibit, ending)] = svg
                found[picture_path(paper, exhibit, f"{ending}-dark")] = dark(svg)
    return found


def table(header: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> str:
    """A table of Markdown, so many columns to the left and the others to the right; cells are escaped already."""
    lines = [header, [*["---"] * texts, *["---:"] * (len(header) - texts)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def agent_link(label: str, root: str, others: Collection[str]) -> str:
    """The label, linked to the agent's page, with the marks of what it is told."""
    name = Spec.parse(label).name
    text = escape(label)
    linked = f"[{text}]({root}agents/{name}.md)" if f"agents/{name}.md" in others else text
    marks = "".join(f"<sup>{TOLD[what][0]}</sup>" for what in told().get(name, ()))
    return f"{linked}{marks}"


def env_link(label: str, root: str, others: Collection[str]) -> str:
    """The environment without what all have in common, linked to its page."""
    page = f"environments/{label.partition(', T=')[0].partition('(')[0].removeprefix('CBO/')}.md"
    text = escape(label.removeprefix("CBO/"))
    return f"[{text}]({root}{page})" if page in others else text


def marks_note() -> str:
    """The meanings of the marks at agents' names."""
    listed = ", ".join(f"<sup>{mark}</sup> {meaning}" for mark, meaning in TOLD.values())
    return f"Agents with marks are told more than spaces, graph and initial data: {listed}."


# The leaderboard ---------------------------------------------------------------------------------------------


def leaderboard_pages(parts: Mapping[str, Sequence[Run]], others: Collection[str] = ()) -> dict[str, str]:
    """The page and its pictures: who is best in each mode, and every suite with all agents that have played it."""
    pictures: dict[str, str] = {}
    runs = [run for found in parts.values() for run in found]
    shown = [
        "---\nhide: [toc]\n---",
        "# Leaderboard",
        "## Who is best at what",
        answers(choice_evidence.table_of(runs), others),
        "Scores of the recommendation on the environments that all methods compared have played, each counting once. "
        "[Which method should I use?](which_method.md) says more: without a graph, with noise, with few rounds. "
        "Where its first answer is another one, the choice depends on what the task tells.",
        folded("How to read the tables", _reading()),
    ]
    if earlier := [suite for suite in load_all() if suite.verdict_seeds == "any"]:
        shown.append(f"Of {', '.join(suite.name for suite in earlier)}: {_judged_on(earlier[0])}")
    for suite in load_all():
        shown += [f"## {suite.name}", f"{suite.title}. {suite.description}"]
        shown += _suite(suite, runs_of(suite, parts), others, pictures)
    listed = "; ".join(f"[{_short(paper)}]({paper.page})" for paper in papers())
    shown += ["## Papers", f"Each paper's figures and claims beside our runs: {listed}."]
    return {LEADERBOARD: "\n\n".join([*shown, ""]), **pictures}


def answers(table_of_runs: pl.DataFrame, others: Collection[str]) -> str:
    """Mode -> the best method with its score and seconds, and the next one; what ``Auto`` says where no two compare."""
    rows = []
    for mode in Mode:
        found = method_choice.comparisons(mode, table_of_runs)["all tasks"]
        link = f"[why](which_method.md#{mode}-mode)"
        if found.means:
            best, second = found.means[:2]
            next_best = f"{agent_link(second.agent, '', others)} {second.score:.3f}"
            known = [f"{best.score:.3f}", next_best, f"{best.seconds:.2g}", f"{found.compared} of {found.envs}"]
        else:
            best = method_choice.answer(mode, table_of_runs)
            known = [f"{best.score:.3f}" if best else MISSING, MISSING, f"{best.seconds:.2g}" if best else MISSING, "1"]
        rows.append([mode, agent_link(best.agent, "", others) if best else "not known", *known, link])
    header = ["mode", "best method", "mean score", "next", _head("seconds a round"), "environments", "evidence"]
    return table(header, rows, texts=2)


def _reading() -> str:
    return (
        f"{SCORE_NOTE} {SECONDS_NOTE} Agents that have played every environment of a suite's mode are ranked; others "
        f"stand apart, since their numbers are of other environments. Intervals are 95 %, and are not shown below "
        f"{LEAST_SEEDS} seeds.\n\n{marks_note()}"
    )


def _head(title: str) -> str:
    return f'<abbr title="{HEADS[title]}">{title}</abbr>' if title in HEADS else title


def folded(summary: str, text: str) -> str:
    """A line that opens; Markdown."""
    return f"<details markdown>\n<summary>{summary}</summary>\n\n{text}\n\n</details>"


def scores_of(board: Leaderboard, mode: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of agents that have played all environments of a mode, the best first, and those of all others."""
    rows = board.overall.filter(pl.col("group") == mode).to_dicts()
    for row in rows:
        if row["fewest_seeds"] < LEAST_SEEDS:
            row |= {f"{name}_{end}": None for name in ("iqm", "average_score") for end in ("low", "high")}
    rows.sort(key=lambda row: -row["iqm"])
    return [row for row in rows if row["envs"] == row["of"]], [row for row in rows if row["envs"] < row["of"]]


def _scores_table(rows: Sequence[Mapping[str, Any]], others: Collection[str], with_envs: bool) -> str:
    names = ("iqm", "average_score")
    header = ["agent", *(["environments"] if with_envs else []), "seeds"]
    header += [_head("interquartile mean"), _head("score of play"), _head("seconds a round")]
    body = [
        [
            agent_link(row["agent"], "", others),
            *([f"{row['envs']} of {row['of']}"] if with_envs else []),
            _seed_range(row["fewest_seeds"], row["most_seeds"]),
            *(escape(str(with_interval(row[name], row[f"{name}_low"], row[f"{name}_high"]))) for name in names),
            f"{row['seconds']:.2g}",
        ]
        for row in rows
    ]
    return table(header, body)


def _seed_range(fewest: int, most: int) -> str:
    return str(most) if fewest == most else f"{fewest} to {most}"


def _chart(suite: Suite, mode: str, whole: Sequence[Mapping[str, Any]], pictures: dict[str, str]) -> str:
    """The scores as a picture, which is put among the others; what shows it."""
    dots = [Dot(row["agent"], row["iqm"], row["iqm_low"], row["iqm_high"]) for row in whole]
    svg = dots_svg(f"{suite.name}, {mode} mode: {_environments(whole[0]['of'])}", dots)
    return _shown(
        f"papers/pictures/scores-{suite.name}-{mode}", svg, f"Scores of {suite.name} in {mode} mode", pictures
    )


def _shown(path: str, svg: str, alt: str, pictures: dict[str, str]) -> str:
    """Puts a picture among the others, for light pages and for dark ones; what shows it."""
    pictures |= {f"{path}.svg": svg, f"{path}-dark.svg": dark(svg)}
    return f"![{alt}]({path}.svg#only-light)![{alt}]({path}-dark.svg#only-dark)"


def _environments(count: int) -> str:
    return "1 environment" if count == 1 else f"{count} environments"


def _board(suite: Suite, runs: Sequence[Run]) -> Leaderboard | None:
    """Of the finished runs of a suite; None without any."""
    finished = any(run.status == "finished" and not run.unverified for run in runs)
    return leaderboard(runs) if finished else None


def _modes(board: Leaderboard) -> list[str]:
    return [group for group in board.groups if group != ALL_MODES]


def runs_of(suite: Suite, parts: Mapping[str, Sequence[Run]]) -> list[Run]:
    """Those on the suite's environments with its number of rounds, from all files; of environments without any, those
    of its own file with most rounds.
    """
    rounds, parts = {label: _horizon(suite, label) for label in suite.labels()}, _taken(suite, parts)
    runs = newest(run for found in parts.values() for run in found if run.horizon == rounds.get(run.env))
    there = {run.env for run in runs if run.status == "finished"}
    shorter = newest(run for run in parts.get(suite.name, ()) if run.env in rounds.keys() - there)
    longest: dict[str, int] = {}
    for run in shorter:
        if run.status == "finished":
            longest[run.env] = max(run.horizon, longest.get(run.env, 0))
    return [*runs, *(run for run in shorter if run.horizon == longest.get(run.env))]


def _taken(suite: Suite, parts: Mapping[str, Sequence[Run]]) -> dict[str, list[Run]]:
    """Of each file the runs that count for a suite: of the seeds that its verdicts take, or blind."""
    return {name: [run for run in runs if run.secret or suite.takes(run.seed, run.env)] for name, runs in parts.items()}


def _judged_on(suite: Suite) -> str:
    """Which seeds verdicts and tables are of, and what they may have chosen."""
    if suite.verdict_seeds == "publication":
        return f"Judged on {FOR_PUBLICATION}, which are for publication alone: no default was chosen on them."
    return (
        "Judged on seeds and instances that were not kept for publication: some of them may have chosen defaults that "
        f"are judged here. Results on {FOR_PUBLICATION}, by which nothing is chosen, will take their place."
    )


def _horizon(suite: Suite, label: str) -> int:
    entry = find_entry(Spec.parse(label).name)
    return suite.horizon or (entry.horizon if entry else 0)


def _suite(suite: Suite, runs: Sequence[Run], others: Collection[str], pictures: dict[str, str]) -> list[str]:
    asked = (
        f"{suite.horizon or 'The registered'} rounds and {suite.seeds} seeds are asked for, compared by "
        f"{suite.metric}. {_judged_on(suite)}"
    )
    board = _board(suite, runs)
    if board is None:
        return [f"**Not run**: nothing of this suite is published. `{sweep_command(suite)}` plays it."]
    parts, folds = [], dict[str, list[str]]()
    for mode in _modes(board):
        whole, partial = scores_of(board, mode)
        of = _environments((whole or partial)[0]["of"])
        if len(_modes(board)) > 1:
            parts.append(f"### {suite.name}, {mode} mode")
        chart = _chart(suite, mode, whole, pictures) if len(whole) > 1 else ""
        if whole:
            shown = f"{chart}\n\n{_scores_table(whole, others, with_envs=False)}"
            parts.append(f'<div class="board" markdown>\n\n{shown}\n\n</div>')
        else:
            parts.append(f"No agent has played all {of}, so none are ranked.")
        if partial:
            said = f"These have not played all {of}, so their numbers are of other environments."
            folds[f"Not ranked in {mode} mode: {len(partial)}"] = [said, _scores_table(partial, others, with_envs=True)]
    folds["How soon"] = _targets(suite, board, pictures)
    folds["GAP and PA-GAP"] = _gap_parts(board, others) if suite.metric == "gap" else []
    folds["Lost without the true graph"] = _lost_parts(board, others)
    folds["Not run"] = [not_run(suite, runs, others)]
    folds["Where the numbers come from"] = [f"{asked} From {escape(provenance(board))}"]
    lines = [folded(summary, "\n\n".join(texts)) for summary, texts in folds.items() if any(texts)]
    return [*parts, '<div class="folds" markdown>\n\n' + "\n\n".join(lines) + "\n\n</div>"]


def _targets(suite: Suite, board: Leaderboard, pictures: dict[str, str]) -> list[str]:
    """Runtime-to-target curves of each mode."""
    parts = []
    for mode in _modes(board):
        if runs := [run for run in board.runs if run.mode == mode and has_targets(run)]:
            title = f"{suite.name}, {mode} mode"
            svg = svg_of(draw_targets(title, runs))
            parts.append(_shown(f"papers/pictures/targets-{suite.name}-{mode}", svg, title, pictures))
    return [TARGETS_NOTE, *parts] if parts else []


def _gap_parts(board: Leaderboard, others: Collection[str]) -> list[str]:
    """GAP and PA-GAP over the environments of each mode, and on each environment."""
    parts = [GAP_NOTE]
    for title, found in gap_tables(board):
        body = [[agent_link(agent, "", others), *map(escape, cells)] for agent, *cells in found.lines]
        parts += [f"**{escape(title)}**", table(found.header, body)]
    return parts


def _lost_parts(board: Leaderboard, others: Collection[str]) -> list[str]:
    """Losses of agents that are told less than the true graph, or something wrong; nothing where there are none."""
    found = graph_loss_tables(board)
    parts = [LOST_NOTE] if found else []
    for env, lost in found.items():
        rows = [[agent_link(agent, "", others), *map(escape, cells)] for agent, *cells in lost.lines]
        parts += [f"**{env_link(env, '', others)}**", table(lost.header, rows, texts=2)]
    return parts


def not_run(suite: Suite, runs: Sequence[Run], others: Collection[str]) -> str:
    """The part of the suite that is not published: agents, environments, pairs with too few seeds; empty if all is."""
    counts: dict[tuple[str, str], set[int]] = defaultdict(set)
    for run in runs:
        if run.status == "finished" and not run.unverified:
            counts[run.env, run.agent].add(run.seed)
    modes = {label: _mode(label) for label in suite.labels()}
    players = {name: [label for label, mode in modes.items() if mode in modes_of(_kind(name))] for name in zoo()}
    none = [name for name, labels in players.items() if labels and not any((label, name) in counts for label in labels)]
    pairs = [(name, label) for name, labels in players.items() if name not in none for label in labels]
    lacking = [(name, label) for name, label in pairs if (label, name) not in counts]
    fewer = [(name, label) for name, label in pairs if 0 < len(counts[label, name]) < suite.seeds]
    rounds = sorted({(run.env, run.horizon) for run in runs if run.horizon < _horizon(suite, run.env)})
    failed = sorted({(run.agent, run.env) for run in runs if run.status == "failed"})
    lines = []
    if none:
        lines.append(f"* agents that play a mode of it: {', '.join(agent_link(name, '', others) for name in none)};")
    lines += [f"* {_pairs(name, labels)};" for name, labels in _grouped(lacking).items()]
    if fewer:
        least = min(len(counts[label, name]) for name, label in fewer)
        lines.append(
            f"* all {suite.seeds} seeds of {len(fewer)} pairs of an agent and an environment: the fewest are {least};"
        )
    if rounds:
        shown = ", ".join(f"{env.removeprefix('CBO/')} ({horizon})" for env, horizon in rounds)
        lines.append(f"* all rounds of {escape(shown)};")
    if failed:
        lines.append(f"* what failed: {escape(', '.join(f'{agent} on {env}' for agent, env in failed))};")
    return "\n".join(lines)[:-1] + "." if lines else ""


def _pairs(name: str, labels: Sequence[str]) -> str:
    shown = ", ".join(label.removeprefix("CBO/") for label in labels[:MOST_LISTED])
    more = f" and {len(labels) - MOST_LISTED} more" if len(labels) > MOST_LISTED else ""
    return f"{escape(name)} on {escape(shown)}{more}"


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for name, label in pairs:
        found[name].append(label)
    return found


def _mode(label: str) -> str:
    entry = find_entry(Spec.parse(label).name)
    return str(entry.mode) if entry else ""


@cache
def _kind(name: str) -> Any:
    return agent_pages.Described(name, zoo()[name]).kind


def sweep_command(suite: Suite, agents: Sequence[str] = ("*",)) -> str:
    named = " ".join(
        f"-a {agent}" if agent.isidentifier() or agent.replace("-", "").isalnum() else f"-a '{agent}'"
        for agent in agents
    )
    return f"cbo-gym sweep runs/{suite.name} --suite {suite.name} {named}"


# A paper -----------------------------------------------------------------------------------------------------


def paper_page(paper: Paper, parts: Mapping[str, Sequence[Run]], others: Collection[str] = ()) -> str:
    """All figures and tables of a paper: ours beside what is published, its claims judged, and what differs."""
    suite, own = load(paper.suite), _own_runs(paper, parts)
    linked = f" [{paper.link.removeprefix('https://')}]({paper.link})" if paper.link else ""
    shown = [
        f'---\ntitle: "{paper.title}"\nhide: [toc]\n---',
        f"# {paper.title}",
        f"{paper.authors}.{linked}",
        *_claims(paper, own, others),
    ]
    for exhibit in paper.exhibits:
        shown += [f"## {exhibit.name}", exhibit.shows, *_exhibit(exhibit, own, paper, others)]
    shown += ["## Departures", *_departures(paper, others), "## How it was played", *_how(paper, suite, own)]
    return "\n\n".join([*shown, ""])


def _own_runs(paper: Paper, parts: Mapping[str, Sequence[Run]]) -> list[Run]:
    """On its environments, with any keywords: those with the paper's rounds, and all of its own file."""
    suite = load(paper.suite)
    parts = _taken(suite, parts)
    of_any = (run for found in parts.values() for run in found if run.horizon == paper.rounds)
    return newest(run for run in (*of_any, *parts.get(paper.suite, ())) if matches(run.env, suite.environments))


def _claims(paper: Paper, runs: Sequence[Run], others: Collection[str]) -> list[str]:
    """How many claims hold, the setting, and every claim on each of its environments, with verdict and interval."""
    said = [
        (one.said, one.ours, exhibit.name, judgement)
        for exhibit in paper.exhibits
        for one in exhibit.claims
        for claim in one.claims(paper.rules)
        for judgement in judge(claim, runs)
    ]
    if not said:
        return [paper.setting, "## Claims", "The paper compares no methods on these environments."]
    judged = together([judgement for *_, judgement in said])
    divisions = {
        whose: [
            (f"{escape(text)} ({name})", one)
            for (text, own, name, _), one in zip(said, judged, strict=True)
            if own is ours
        ]
        for whose, ours in (("The paper's claims", False), ("Claims of ours", True))
    }
    parts = [f"**{whose}: {_tally([one for _, one in own])}**" for whose, own in divisions.items() if own]
    summary = f"{'; '.join(parts)}, each counted on each of its environments. {_judged_on(load(paper.suite))}"
    parts = [summary, paper.setting, "## Claims", *_dominance(paper, runs)]
    header = ["claim", "verdict", "environment", "methods", "by", "difference", "pairs", "rounds"]
    for whose, own in divisions.items():
        if own:
            rows = [[text, *_judged(one, others)] for text, one in own]
            heading = [f"### {whose}"] if all(divisions.values()) else []
            parts += [*heading, f'<div class="claims" markdown>\n\n{table(header, rows, texts=5)}\n\n</div>']
    return [*parts, folded("How claims are judged", CLAIMS_NOTE)]


def _dominance(paper: Paper, runs: Sequence[Run]) -> list[str]:
    """Whether no method is the best everywhere, of the exhibits that are said to show it."""
    lines = []
    for exhibit in paper.exhibits:
        if by := exhibit.none_dominates:
            verdict = _verdict(none_dominates(exhibit.agents, exhibit.environments, by, paper.rules, runs))
            lines.append(f"* {exhibit.name}: {verdict}, by {REGRETS[by]}")
    said = (
        "The paper's claim that no method dominates, which one that is better than all others everywhere would refute:"
    )
    return [said, "\n".join(lines)] if lines else []


def _tally(judged: Sequence[Judgement]) -> str:
    """How many have each verdict, and how many of these keep it when all claims are judged together."""
    counts = Counter(one.verdict for one in judged)
    kept = Counter(one.verdict for one in judged if one.corrected == one.verdict)
    return ", ".join(
        f"{counts[verdict]} {_verdict(verdict)}"
        + (f" ({kept[verdict]} corrected)" if kept[verdict] < counts[verdict] else "")
        for verdict in VERDICTS
        if counts[verdict]
    )


CHOSEN = "-chosen"  # ends the name of a picture's file
FOR_PUBLICATION = f"seeds and instances {PUBLICATION.start} to {PUBLICATION.stop - 1}"
VERDICTS = ("confirmed", "refuted", "equivalent", "open", "not run")


SAID_OF: dict[Kind, str] = {"better": "over", "as good": "as good as", "equivalent": "like"}


def _verdict(verdict: str) -> str:
    """In words and in colour."""
    return f'<span class="verdict {verdict.replace(" ", "-")}">{verdict}</span>'


def _judged(one: Judgement, others: Collection[str]) -> list[str]:
    claim = one.claim
    methods = (
        f"{agent_link(claim.better, '../', others)} {SAID_OF[claim.kind]} {agent_link(claim.worse, '../', others)}"
    )
    if claim.worse_env:
        methods += f" on {env_link(claim.worse_env, '../', others)}"
    cells = [_verdict(one.verdict), env_link(one.env, "../", others), methods, REGRETS[claim.by]]
    if one.verdict == "not run":
        return [*cells, MISSING, "0", MISSING]
    interval = f"{one.difference:.3f}"
    low, high = f"{one.low:.3f}", f"{one.high:.3f}"
    if np.isfinite([one.low, one.high]).all() and low != high:
        interval += f" [{low},&nbsp;{high}]"
    needed = claim.looks[0]
    pairs = str(one.pairs) if one.pairs >= needed else f"{one.pairs} of {needed}"
    rounds = str(one.rounds) if claim.after in (None, one.rounds) else f"{one.rounds} of {claim.after}"
    return [*cells, interval, pairs, rounds]


def _exhibit(exhibit: Exhibit, runs: Sequence[Run], paper: Paper, others: Collection[str]) -> list[str]:
    parts = [f"**Published**: {exhibit.published}"] if exhibit.published else []
    if exhibit.missing:
        return [*parts, f"**Not run**: {exhibit.missing}"]
    assert exhibit.quantity is not None, f"{paper.suite}, {exhibit.name}: a quantity is needed"
    columns = [(env, after) for env in exhibit.environments for after in exhibit.rounds or [None]]
    played = _played(exhibit, runs)
    header = ["method", *(_column(env, after, exhibit, others) for env, after in columns)]
    rows = []
    for agent in exhibit.agents:
        if agent in exhibit.theirs:
            rows.append([f"{escape(agent)}, published", *exhibit.theirs[agent]])
        cells = [_cell(played[agent, env], exhibit.quantity, after) for env, after in columns]
        rows.append([agent_link(agent, "../", others) + (", ours" if exhibit.theirs else ""), *cells])
    when = "" if exhibit.rounds else ", after the last round"
    title = f"{QUANTITIES[exhibit.quantity]}{when}: mean ± half the 95 % interval"
    skipped = {(run.agent, run.env) for run in runs if run.status == "skipped"}
    missing = [pair for pair, found in played.items() if not found and pair not in skipped]
    parts += [f"{title} (seeds).", table(header, rows)]
    if _is_drawn(exhibit, played):
        parts.append(_image(paper, exhibit))
    if _choosing(exhibit, played):
        parts += ["How often each was chosen up to a round, of all rounds so far:", _image(paper, exhibit, CHOSEN)]
    if len(missing) == len(played):
        return [*parts[: None if exhibit.theirs else -2], "**Not run**: the store has no run of it."]
    if missing:
        listed = [_pairs(agent, labels) for agent, labels in _grouped(missing).items()]
        parts.append(f"**Not run**: {'; '.join(listed)}.")
    return parts


def _played(exhibit: Exhibit, runs: Sequence[Run]) -> dict[tuple[str, str], list[Run]]:
    """Method and environment -> the finished runs, of which those with most rounds count."""
    found = {}
    for agent in exhibit.agents:
        for env in exhibit.environments:
            own = [run for run in runs if run.agent == agent and run.status == "finished" and _is_on(run, env)]
            longest = max((run.horizon for run in own), default=0)
            found[agent, env] = [run for run in own if run.horizon == longest]
    return found


def _is_drawn(exhibit: Exhibit, played: Mapping[tuple[str, str], Sequence[Run]]) -> bool:
    """Whether there is a curve: of recommendations after the last round alone there is none."""
    quantity = exhibit.quantity
    if quantity is None or quantity in NUMBERS:
        return False
    return any(np.isfinite(curve_of(run, quantity)).sum() > 1 for found in played.values() for run in found[:1])


def _choosing(exhibit: Exhibit, played: Mapping[tuple[str, str], Sequence[Run]]) -> dict[str, Sequence[Run]]:
    """The methods with several choices and their runs, where an exhibit shows what was chosen."""
    if not exhibit.chosen:
        return {}
    return {agent: runs for (agent, _), runs in played.items() if runs and len(np.unique(runs[0].table["choice"])) > 1}


def pictures(exhibit: Exhibit, runs: Sequence[Run]) -> dict[str, str]:
    """End of the file's name -> SVG: the curves of an exhibit, and what was chosen; nothing of what is not there."""
    played, found = _played(exhibit, runs), {}
    if _is_drawn(exhibit, played):
        assert exhibit.quantity is not None  # else nothing is drawn
        title = QUANTITIES[exhibit.quantity].replace("\\*", "*")
        found[""] = curves_svg(played, exhibit.quantity, title, exhibit.names, printed(exhibit))
    if choosing := _choosing(exhibit, played):
        found[CHOSEN] = chosen_svg(choosing)
    return found


def printed(exhibit: Exhibit) -> dict[tuple[str, str], list[Printed]]:
    """Method and environment -> the numbers that the paper prints of a curve; nothing where it has them of its end."""
    places = [(env, after) for env in exhibit.environments for after in exhibit.rounds]
    found: dict[tuple[str, str], list[Printed]] = defaultdict(list)
    for agent, cells in exhibit.theirs.items():
        for (env, after), cell in zip(places, cells, strict=False):
            mean, _, half = cell.partition("±")
            found[agent, env].append(Printed(after, float(mean), float(half or 0.0)))
    return found


def picture_path(paper: Paper, exhibit: Exhibit, ending: str = "") -> str:
    return f"papers/pictures/{paper.suite}-{paper.exhibits.index(exhibit)}{ending}.svg"


def _image(paper: Paper, exhibit: Exhibit, ending: str = "") -> str:
    """What shows a picture on light pages and on dark ones."""
    kinds = {"light": ending, "dark": f"{ending}-dark"}
    paths = {kind: picture_path(paper, exhibit, end).removeprefix("papers/") for kind, end in kinds.items()}
    return "".join(f"![{exhibit.name}: ours]({path}#only-{kind})" for kind, path in paths.items())


def _is_on(run: Run, env: str) -> bool:
    return run.env == env or ("*" in env and matches(run.env, [env]))


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


def quantity_of(run: Run, quantity: Quantity, after: int) -> float:
    """The quantity of a figure for one run after so many rounds; NaN if it is of a recommendation that was not made."""
    if quantity in NUMBERS:
        return NUMBERS[quantity](run)
    values = curve_of(run, quantity)[:after]
    known = values[~np.isnan(values)]
    return float(known[-1]) if len(known) else np.nan


def _departures(paper: Paper, others: Collection[str]) -> list[str]:
    """Of the methods, as their modules list them."""
    names = list(dict.fromkeys(Spec.parse(label).name for label in paper.agents))
    parts = ["What the methods here do otherwise than their papers, as their code says."]
    for name in names:
        parts += [f"**{agent_link(name, '../', others)}**", agent_pages.Described(name, zoo()[name]).departures]
    return parts


def _played_with(runs: Sequence[Run]) -> str:
    """Runs, seeds, versions, days and machines."""
    days = sorted({run.date.partition("T")[0] for run in runs if run.date})
    rounds = map(str, sorted({run.horizon for run in runs}))
    said = [
        f"{len(runs)} finished runs of {' or '.join(rounds)} rounds",
        f"{len({run.seed for run in runs})} seeds",
        f"cbo-gym {' and '.join(sorted({run.version for run in runs}))}",
        *([" to ".join(dict.fromkeys([days[0], days[-1]]))] if days else []),
        *sorted({run.machine for run in runs if run.machine}),
    ]
    return "; ".join(said) + "."


def _how(paper: Paper, suite: Suite, runs: Sequence[Run]) -> list[str]:
    command = paper.sweep or sweep_command(suite, paper.agents)
    parts = [
        f"```sh\n{command}\ncbo-gym publish runs/{suite.name} --suite {suite.name}\n```",
        f"The paper has {paper.rounds} rounds and {paper.seeds} seeds.",
    ]
    finished = [run for run in runs if run.status == "finished"]
    if not finished:
        return [*parts, "**Not run**: nothing of this paper is published yet."]
    hours = sum(map(run_seconds, finished)) / 3600
    seeds: dict[tuple[str, str, int], set[int]] = defaultdict(set)
    for run in finished:
        seeds[run.agent, run.env, run.horizon].add(run.seed)
    few = sum(len(found) < LEAST_SEEDS for found in seeds.values())
    rounds = sorted({run.horizon for run in finished})
    shorter = [horizon for horizon in rounds if horizon < paper.rounds]
    source = f"{escape(_played_with(finished))} The agents' own time: {hours:.2g} hours."
    parts.append(folded("Where our numbers come from", source))
    if shorter:
        parts.append(f"Fewer rounds than the paper's, for want of time: {', '.join(map(str, shorter))}.")
    if few:
        parts.append(f"{few} of {len(seeds)} pairs of an agent and an environment have fewer than {LEAST_SEEDS} seeds.")
    return parts
