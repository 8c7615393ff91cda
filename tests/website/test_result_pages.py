"""The pages of results: every suite and every figure is there, what is missing is said, and claims are judged."""

import csv
import io
import re
import xml.etree.ElementTree as ET
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import get_args

import numpy as np
import pytest
from matplotlib.figure import Figure

import cbo_gym.evaluation.play.runner as runner
from cbo_gym._util.yaml import read_yaml
from cbo_gym.agent_registry.finding import create_agent, find_agent, modes_of
from cbo_gym.agent_registry.labels import Spec, bare_name
from cbo_gym.agent_registry.zoo import zoo
from cbo_gym.envs.registry import find_entry
from cbo_gym.errors import CBOGymError
from cbo_gym.evaluation import evaluate, leaderboard
from cbo_gym.evaluation.claims import papers as paper_contents
from cbo_gym.evaluation.claims.papers import papers
from cbo_gym.evaluation.seed_ranges import PUBLICATION
from cbo_gym.evaluation.suites import load, load_all
from cbo_gym.referee.submission import TaskField
from cbo_gym.task import Mode
from tests.support.families import by_family
from tests.support.runs import made_up_run
from website.common.links import KNOWLEDGE, KNOWLEDGE_FILE, Links, knowledge
from website.common.paths import DOCS
from website.pages import agent_results, agents
from website.pages import leaderboard as leaderboard_page
from website.pages import results as result_pages
from website.papers import page as paper_page
from website.papers.figures import shares_chosen
from website.papers.published import seeds_note, suite_runs
from website.papers.quantities import quantity_of

TOY, PSA = "CBO/ToyGraph-v0", "CBO/PSAGraph-v0"
FIRST = PUBLICATION.start


def played(values, seeds, envs=(TOY,), rounds=100, step=0.0, **more):
    """Runs of agents, each with a constant reward, which is higher by a step with each seed."""
    return [
        made_up_run(agent, FIRST + i, [value + step * i] * rounds, env, "hard", **more)
        for agent, value in values.items()
        for env in envs
        for i in range(seeds)
    ]


@pytest.fixture(scope="module")
def pages():
    """On one task of the MCBO paper: MCBO above CBO, CBO above GP-UCB, and one run that is too short."""
    runs = played({"MCBO": 0.9, "CBO": 0.6, "GP-UCB": 0.3}, seeds=5, step=0.01)
    runs += played({"Random": 0.1}, seeds=1, rounds=50)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leaderboard_page, "draw_targets", lambda runs: Figure())  # which takes long
        return result_pages.pages({"mcbo2023": runs}, {f"agents/{name}.md" for name in zoo()})


@pytest.fixture
def shown(monkeypatch):
    """The leaderboard's part on a suite with these runs; without pictures, which take long."""
    for drawing in ("draw_targets", "svg_of", "dots_svg"):
        monkeypatch.setattr(leaderboard_page, drawing, lambda *given: "")

    def part(name, runs):
        suite = load(name)
        return "\n\n".join(leaderboard_page.suite_part(suite, suite_runs(suite, {name: runs}), Links(), {}))

    return part


def paper_on(suite):
    return next(paper for paper in papers() if paper.suite == suite)


def test_every_suite_is_on_the_leaderboard_and_what_is_not_run_is_said(pages):
    page, suites = pages["leaderboard.md"], [suite.name for suite in load_all()]
    assert re.findall(r"^## (.*)", page, flags=re.MULTILINE) == ["Who is best at what", *suites, "Papers"]
    parts = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", page, flags=re.MULTILINE | re.DOTALL))
    assert "**Not run**: nothing of this suite is published." in parts["gpoo2022"]
    mcbo = parts["mcbo2023"]
    assert "| [MCBO](agents/MCBO.md)<sup>n</sup> | 5 | 0.920 [0.9" in mcbo
    assert "papers/pictures/scores-mcbo2023-hard.svg" in mcbo
    assert "papers/pictures/scores-mcbo2023-hard.svg" in pages
    assert "agents that play a mode of it: [Random](agents/Random.md), [EIFN]" in mcbo
    assert "* CBO on PSAGraph-v0" in mcbo
    assert "all 20 seeds of 3 pairs of an agent and an environment: the fewest are 5" in mcbo


def test_gap_is_shown_where_a_suite_is_compared_by_it(shown):
    page = shown("survey2026", played({"CBO": 0.5}, 1, ["CBO/SurveyToyGraph-v0"], initial_expected=0.0))
    assert "**Hard, over environments: expected**" in page
    assert "| agent | GAP at 20 | GAP at 50 | GAP at 100 | PA-GAP at 20" in page


def test_what_is_lost_without_the_true_graph_is_shown_where_it_was_played(shown):
    system = "CBO/SurveyToyGraph-v0"
    wrong = next(label for label in load("ceo2023").labels() if label.startswith(f"{system}(graph='wrong'"))
    known, without = (played({"CBO": value}, 2, [env], rounds=40) for env, value in ((system, 0.9), (wrong, 0.4)))
    page = shown("ceo2023", known + without)
    assert "<summary>Lost without the true graph</summary>" in page
    assert re.search(r"\| CBO(<sup>n</sup>)? \| wrong.*\| 2 \| 0\.5[0 ±.]* \|", page)
    assert "Lost without the true graph" not in shown("ceo2023", known)


def test_who_has_not_played_everything_is_never_ranked_among_those_who_have(shown):
    runs = played({"CBO": 0.5, "Random": 0.1}, 5, [TOY, PSA]) + played({"MCBO": 0.9}, 5)
    whole, partial = leaderboard_page.scores_of(leaderboard(runs), "hard")
    assert [row["agent"] for row in whole] == ["CBO", "Random"]
    assert [(row["agent"], row["envs"]) for row in partial] == [("MCBO", 1)]
    ranked, _, apart = shown("mcbo2023", runs).partition("<summary>Not ranked in hard mode: 1</summary>")
    assert "| CBO<sup>n</sup> | 5 | 0.500 |" in ranked
    assert "| MCBO<sup>n</sup> | 1 of 2 | 5 | 0.900 |" in apart.partition("</details>")[0]


def test_the_verdicts_of_every_paper_are_counted_on_the_index_and_listed_as_csv(pages):
    counted = pages["papers/index.md"]
    for paper in papers():
        (row,) = [line for line in counted.splitlines() if line.startswith(f"| [{paper.short}]({paper.suite}.md) |")]
        own = pages[paper.page]
        for tally in row.split("|")[2:4]:
            assert tally.strip() == "-" or f": {tally.strip()}**" in own
        listed = list(csv.DictReader(io.StringIO(pages[f"papers/{paper.suite}-claims.csv"])))
        shown = own.partition("## Claims")[2].partition("How claims are judged")[0].count('class="verdict')
        assert len(listed) == shown
        numbers = [f"{float(row['difference']):.3f} [{float(row['low']):.3f}," for row in listed if row["pairs"] > "1"]
        assert all(number in own for number in numbers if "nan" not in number)


def test_the_leaderboard_begins_with_the_best_of_each_mode(pages):
    table = pages["leaderboard.md"].partition("## Who is best at what")[2].partition("## ")[0]
    rows = re.findall(r"^\| \[(\w+)\]\(which_method.md#(\w+)-mode\) \| ", table, flags=re.MULTILINE)
    assert rows == [(str(mode), str(mode)) for mode in Mode]


def test_the_best_agent_is_found_by_seeds_for_publication_alone():
    for_tuning = [replace(run, seed=run.seed - FIRST) for run in played({"CBO": 0.9, "MCBO": 0.5}, 5, [TOY, PSA])]
    runs = [*for_tuning, *played({"CBO": 0.3, "MCBO": 0.6}, 5, [TOY, PSA])]

    def row(given):
        table = leaderboard_page.answers(given, Links())
        return next(line for line in table.splitlines() if line.startswith("| [hard]"))

    assert re.search(
        r"\) \| MCBO<sup>n</sup> \| 0\.600 \| 2 of 2 \| 5 \| CBO.* \| 0\.300 on 2 \|", row({"mcbo2023": runs})
    )
    few = [run for run in runs if (run.agent, run.seed) != ("MCBO", FIRST)]
    assert "| MCBO<sup>n</sup> | - | - | - | - | - | - |" in row({"mcbo2023": few}), "four seeds give no score"


def test_runs_of_other_lengths_count_only_in_their_own_suite_and_alone():
    short, full = (made_up_run("A", FIRST, [0.5] * rounds, TOY, "hard") for rounds in (50, 100))
    suite = load("mcbo2023")
    assert suite_runs(suite, {"mcbo2023": [short]}) == [short]
    assert suite_runs(suite, {"mcbo2023": [short, full]}) == suite_runs(suite, {"showcase": [full, short]}) == [full]
    assert suite_runs(suite, {"showcase": [short]}) == []


def test_claims_are_judged_and_open_ones_named():
    values = {"MCBO(beta=0.5)": 0.9, "MCBO": 0.8, "CBO": 0.6, "CBO(in_common=False)": 0.6, "GP-UCB(beta=0.5)": 0.895}
    # in every second run: differences that are all the same decide nothing
    moved = {"MCBO(beta=0.5)": 1e-4, "MCBO": 1e-4}
    runs = [
        made_up_run(agent, FIRST + i, [value + i / 100 + i % 2 * moved.get(agent, 0.0)] * 100, TOY, "hard")
        for agent, value in values.items()
        for i in range(22 if agent == "CBO" else 20)
    ]
    runs += played({"CBO": 0.5}, 3, [PSA])
    paper = paper_on("mcbo2023")
    own = paper_contents.ClaimEntry(
        statement="MCBO is as good", better="MCBO", worse=["CBO"], envs=[TOY, PSA], ours=True
    )
    exhibit = paper.exhibits[0].model_copy(update={"claims": [*paper.exhibits[0].claims, own]})
    short = paper.model_copy(update={"exhibits": [exhibit]})
    page = paper_page.paper_pages(short, {"mcbo2023": runs}, Links())[paper.page]
    row = r'"verdict [\w-]+">(.*?)</span> \| ([\w-]+) \| (\S+) over (\S+) \| average regret \| (.*?) \| (.*?) \| .* \|'
    found = {
        (env, re.sub(r"<.*", "", one), re.sub(r"<.*", "", two)): (verdict, difference, pairs)
        for verdict, env, one, two, difference, pairs in re.findall(row, page)
    }
    assert found["ToyGraph-v0", "MCBO(beta=0.5)", "CBO(in_common=False)"] == ("confirmed", "0.300", "20")
    assert found["ToyGraph-v0", "MCBO(beta=0.5)", "GP-UCB(beta=0.5)"] == ("equivalent", "0.005", "20")
    assert found["ToyGraph-v0", "MCBO", "CBO"] == ("confirmed", "0.200", "20"), "ours, on the defaults"
    assert found["PSAGraph-v0", "MCBO", "CBO"][0] == "not run"
    top = page.partition("## Claims")[0]
    assert "The paper's claims: 1 <span" in top
    assert "Our claims: 2 <span" in top
    few_runs = [run for run in runs if run.seed < FIRST + 4]
    few = paper_page.paper_pages(short, {"mcbo2023": few_runs}, Links())[paper.page]
    assert re.search(r'"verdict open">open</span> \| ToyGraph-v0 \| .* \| 4 of 20 \|', few)
    assert "which are for publication alone: no default was chosen on them" in top
    lax = load("mcbo2023").model_copy(update={"verdict_seeds": "any"})
    assert "defaults that are judged here may have been chosen on some of them" in seeds_note(lax)


def test_figures_are_beside_ours_and_say_what_is_not_run(pages):
    page = pages["papers/mcbo2023.md"]
    exhibits = [exhibit.name for exhibit in paper_on("mcbo2023").exhibits]
    sections = ["Claims", *exhibits, "How soon", "Departures", "How it was played"]
    assert re.findall(r"^## (.*)", page, flags=re.MULTILINE) == sections
    assert "![How soon, hard mode](pictures/targets-mcbo2023-hard.svg#only-light)" in page
    assert "papers/pictures/targets-mcbo2023-hard.svg" in pages
    assert "| [CBO](../agents/CBO.md)<sup>n</sup> | 0.620 ± 0.020 (5) | - |" in page
    assert "[These numbers as CSV](mcbo2023-0.csv)" in page
    listed = csv.DictReader(io.StringIO(pages["papers/mcbo2023-0.csv"]))
    toy, psa = (row for row in listed if row["method"] == "CBO")
    assert (float(toy["mean"]), float(toy["half_interval"])) == pytest.approx((0.62, 0.02), abs=1e-3)
    assert (toy["environment"], toy["seeds"], psa["mean"], psa["seeds"]) == (TOY, "5", "", "0")
    assert "**Not run**: MCBO on PSAGraph-v0; MCBO(beta=0.5) on ToyGraph-v0, PSAGraph-v0; EIFN on" in page
    assert "**Not run**: the store has no run of it." in page
    assert "python -m website.papers.runs mcbo2023 --play\ncbo-gym publish runs/pages/mcbo2023 --suite mcbo2023" in page
    assert "16 finished runs of 50 or 100 rounds; 5 seeds;" in page
    assert "0 of 16 runs are of today's revisions; 16 are of earlier ones, and count with them." in page
    assert "1 of 4 pairs of an agent and an environment have fewer than 5 seeds." in page
    assert "![Figure 2 (a, b): ours](pictures/mcbo2023-0.svg#only-light)" in page
    assert {path for path in pages if path.endswith(".svg") and "/scores-" not in path and "/targets-" not in path} == {
        f"papers/pictures/mcbo2023-{place}{ending}.svg" for place in (0, 3, 5) for ending in ("", "-dark")
    }
    ET.fromstring(pages["papers/pictures/mcbo2023-0.svg"])
    table = pages["papers/excbo2024.md"].partition("## Table 2")[2].partition("## Table 3")[0]
    assert "| MCBO(beta=5), published | 0.78 ± 0.05 |" in table
    assert "**Not run**" in table


@pytest.mark.parametrize("paper", papers(), ids=lambda paper: paper.suite)
def test_papers_name_agents_and_environments_that_there_are(paper):
    claims = [claim for exhibit in paper.exhibits for claim in exhibit.claims]
    agents = [paper.agents, *(one.agents for one in paper.exhibits), *([one.better, *one.worse] for one in claims)]
    for agent in set(chain.from_iterable(agents)):
        create_agent(agent)
    envs = [*(one.environments for one in paper.exhibits), *([*one.envs, one.worse_env] for one in claims)]
    bases = {bare_name(label) for label in load(paper.suite).labels()}
    for env in set(chain.from_iterable(envs)) - {""}:
        assert bare_name(env) in bases, env
        assert find_entry(bare_name(env)) is not None
        if "*" not in env:
            assert str(Spec.parse(env)) == env, "labels have their keywords in order"
    for exhibit in paper.exhibits:
        columns = len(exhibit.environments) * max(len(exhibit.rounds), 1)
        assert all(len(cells) == columns for cells in exhibit.published_numbers.values()), exhibit.name
        assert bool(exhibit.picture) == bool(exhibit.picture_command), exhibit.name
        assert exhibit.picture or exhibit.quantity, exhibit.name
        assert not exhibit.picture or (DOCS / "pictures" / exhibit.picture).is_file(), exhibit.name
        assert set(exhibit.published_numbers) <= set(exhibit.agents)
        for said in exhibit.claims:
            assert set(said.envs) <= set(exhibit.environments), exhibit.name
            assert said.better in exhibit.agents, exhibit.name
            others = [one for one in paper.exhibits if said.worse_env in one.environments] or [exhibit]
            assert not said.worse_env or said.worse_env in others[0].environments, exhibit.name
            assert any(set(said.worse) <= set(one.agents) for one in others), exhibit.name


ENVS = {
    "soft": "CBO/Dropwave-v0", "hard": TOY, "contextual": "CBO/CoCaFig1-v0", "aggregated": "CBO/GPBandit1-v0",
    "masked": "CBO/SSEMPeriodic-v1", "discrete": "CBO/IVBandit-v0", "adversarial": "CBO/Dropwave-Penny-v0",
    "dynamic": "CBO/DCBOStat-v0", "partial": "CBO/GPs1-v0",
}  # fmt: skip


def test_marks_are_those_of_cards():
    assert set(KNOWLEDGE) == set(get_args(TaskField))
    assert set(read_yaml(KNOWLEDGE_FILE)) <= set(zoo())
    assert len({mark for mark, _ in KNOWLEDGE.values()}) == len(KNOWLEDGE)


@pytest.mark.parametrize("name", by_family(zoo()))
def test_marks_are_of_what_an_agent_reads(name, monkeypatch):
    read = set()
    made = runner.make_task

    def recorded(env, seed):
        task = made(env, seed)

        class Recorded(type(task)):
            def __getattribute__(self, field):
                if field in KNOWLEDGE:
                    read.add(field)
                return super().__getattribute__(field)

        copy = object.__new__(Recorded)
        vars(copy).update(vars(task))
        return copy

    monkeypatch.setattr(runner, "make_task", recorded)
    for env in [*(ENVS[mode] for mode in modes_of(find_agent(name)) if mode in ENVS), "CBO/Alpine2-Cost-v0"]:
        with suppress(CBOGymError):  # a task that it does not play, or a library that is missing
            evaluate(create_agent(name), env, 0, horizon=1, recommend="end")
    assert sorted(read) == sorted(knowledge().get(name, ())), f"website/common/knowledge.yaml, {name}"


def test_what_is_known_after_the_last_round_alone_is_not_drawn():
    env = "CBO/GPBandit1-v0"
    fields = {"name": "Figure", "shows": "Regret.", "quantity": "simple_regret", "environments": [env]}
    exhibit = paper_contents.Exhibit(**fields, agents=["Random"])
    at_end, each_round = (evaluate("Random", env, 0, horizon=4, recommend=when) for when in ("end", "every"))
    assert not paper_page.pictures(exhibit, [at_end])
    assert paper_page.pictures(exhibit, [each_round]).keys() == {""}
    assert not paper_page.pictures(exhibit, [])
    known = [quantity_of(at_end, "simple_regret", rounds) for rounds in (2, 4)]
    assert np.isnan(known[0])
    assert known[1] == at_end.table["simple_regret"][-1]
    assert quantity_of(at_end, "average_regret", 2) == at_end.table["average_regret"][1]


def test_what_was_chosen_is_drawn_where_there_is_a_choice():
    run = evaluate("Random", "CBO/CoCaFig1-v0", 0, horizon=6)
    fields = {"name": "Figure", "shows": "Choices.", "quantity": "average_regret", "environments": [run.env]}
    exhibit = paper_contents.Exhibit(**fields, agents=["Random"], with_choices=True)
    assert paper_page.pictures(exhibit, [run]).keys() == {"", paper_page.CHOSEN}
    shares = shares_chosen(run)
    assert shares.shape == (len(run.choices), 6)
    np.testing.assert_allclose(shares.sum(axis=0), 1.0)
    assert shares[run.table["choice"][0], 0] == 1.0
    one_choice = evaluate("CoBO", "CBO/CoCaFig1-v0", 0, horizon=2)
    exhibit = paper_contents.Exhibit(**fields, agents=["CoBO"], with_choices=True)
    assert paper_page.CHOSEN not in paper_page.pictures(exhibit, [one_choice])


def test_an_agent_is_drawn_beside_the_best_other_method_and_random_play(monkeypatch):
    scores = [agent_results.Score(name, 4, 5, 0.5, 0.1, 0.1) for name in ("CBO", "GP-UCB", "MCBO", "Random")]
    monkeypatch.setattr(agent_results, "ranking", lambda: {TOY: scores})
    monkeypatch.setattr(agent_results, "known_agents", lambda: ["MCBO", "CBO-U"])
    runs = played({"MCBO": 0.5, "CBO": 0.6, "GP-UCB": 0.4, "Random": 0.1}, 5, rounds=4)
    pictures = agent_results.curves({"mcbo2023": runs})
    assert pictures.keys() == {"agents/pictures/MCBO.svg", "agents/pictures/MCBO-dark.svg"}
    drawn = [
        name for name in ("MCBO", "CBO", "GP-UCB", "Random") if f">{name}<" in pictures["agents/pictures/MCBO.svg"]
    ]
    assert drawn == ["MCBO", "CBO", "Random"]
    assert "](pictures/MCBO.svg#only-light)" in agents.pages(pictures)["agents/MCBO.md"].partition("## Paper")[0]


def test_numbers_that_a_paper_prints_of_a_curve_are_marked_beside_ours():
    exhibits = {exhibit.name: exhibit for exhibit in paper_on("excbo2024").exhibits}
    marks = paper_page.printed_numbers(exhibits["Table 2"])["MCBO(beta=5)", "CBO/Dropwave-NoisyPublished-v0"]
    assert [mark.rounds for mark in marks] == [20, 40, 60, 80, 100]
    assert marks[0] == (20, 0.78, 0.05)
    assert not paper_page.printed_numbers(exhibits["Table 1 and Figure 15"])
