"""The pages of environments: that none and nothing of them is missing, and that their formulas are the code's."""

import re
import xml.etree.ElementTree as ET
from html import unescape
from typing import Any

import numpy as np
import polars as pl
import pytest
import sympy

from cbo_gym.envs.registry import entries
from cbo_gym.scm import Intervention, SeparableSEM
from cbo_gym.scm.expression import STEPS
from cbo_gym.task import Mode
from tests.support.environments import COVERING
from website.common.svg import dark, size_of, svg_of
from website.maths.equations import noise_name
from website.pages import agent_results, landscapes
from website.pages import environments as environment_pages
from website.pages.environments import Environment, environments
from website.pages.pictures import Pictures, graph_of

ALL = environments()
IDS = [one.entry.id for one in ALL]
#: all as parameters, slow but for the covering ones
EVERY = [
    pytest.param(one, id=one.entry.id, marks=[] if one.entry.id in COVERING else [pytest.mark.slow]) for one in ALL
]
DRAWN = Pictures('<svg height="80pt" width="160pt"></svg>', '<svg height="80pt" width="160pt"></svg>', "A slice.")
ROUNDS = 40
#: the steps of expressions; comparisons are 1 or 0, which can be added
NUMBERS = {name: lambda *values, step=step: 1.0 * step(*values) for name, step in STEPS.items()}


def played(one: Environment) -> tuple[dict[str, Any], dict[str, Any]]:
    """Random rounds: the values of all variables, and of the other symbols of the formulas."""
    dynamics, rng = one.dynamics, np.random.default_rng(7)
    scm, domains = dynamics.scm, dynamics.problem.domains
    noise = scm.draw_noise(rng, ROUNDS)
    drawn = {v.name: column for v, column in zip(scm.noisy, noise, strict=True)}
    if one.entry.mode is Mode.MASKED:
        soft = rng.integers(0, 2, (scm.action_dim, ROUNDS)).astype(float)
    else:
        soft = domains.points_to_native(rng.random((ROUNDS, scm.action_dim))).T
    given = dict(zip(dynamics.symbols, soft, strict=True))
    assert not set(given) & set(scm.nodes)
    values = scm.propagate(noise, Intervention(tuple(soft)))
    if isinstance(scm, SeparableSEM):
        given = {f"x{i + 1}": column for i, column in enumerate(soft)} | drawn
    return values, given | {noise_name(name): column for name, column in drawn.items()}


@pytest.mark.parametrize("one", EVERY)
def test_every_node_has_an_equation_which_the_code_fulfils(one: Environment) -> None:
    values, given = played(one)
    scm = one.dynamics.scm
    assert [equation.name for equation in one.equations if equation.observed] == list(scm.nodes)
    truth = dict(values)
    if isinstance(scm, SeparableSEM):  # errors of observation are in the reward and in no other equation
        truth |= {name: values[name] - given.get(noise_name(f"error of {name}"), 0.0) for name in scm.nodes[:-1]}
    for equation in one.equations:
        known = given | (values if equation.name == scm.reward else truth)
        symbols = sorted(equation.formula.value.free_symbols, key=str)
        assert set(equation.noise) <= set(map(str, symbols)) <= set(known)
        value = sympy.lambdify(symbols, equation.formula.value, [NUMBERS, "numpy"])
        found = np.broadcast_to(value(*(known[str(one)] for one in symbols)), ROUNDS)
        np.testing.assert_allclose(found, np.broadcast_to(truth[equation.name], ROUNDS), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("one", EVERY)
def test_every_environment_has_a_page_with_all_sections(one: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(one.__dict__, "pictures", DRAWN)
    # All published results take seconds to read.
    monkeypatch.setattr(environment_pages, "ranking", dict)
    text = environment_pages.page(one)
    sections = ["Graph", "Equations", "Actions and observations", "Optimum", "Reward landscape", "Results", "Keywords"]
    found = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    assert [title for title in found if title != "About"] == [*sections, "Source"]
    assert f'gym.make("cbo_gym:{one.entry.id}")' in text
    assert ":func:" not in text
    (equations,) = re.findall(r'<div class="equations".*', text)
    tree = ET.fromstring(unescape(equations.replace(" data-search-exclude", "")))
    assert len(tree) >= 1
    assert all(math.text is None for math in tree.iter("math"))


def test_overviews_and_navigation_name_every_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for one in ALL:
        monkeypatch.setitem(one.__dict__, "pictures", DRAWN)
    monkeypatch.setattr(environment_pages, "page", lambda one: one.name)
    written, cards = environment_pages.table(), environment_pages.gallery()
    pages = [page for group in environment_pages.navigation()[2:] for items in group.values() for page in items]
    listed = [path for page in pages for path in page.values()]
    assert sorted(listed) == sorted(f"environments/{entry.id[4:]}.md" for entry in entries())
    for entry in entries():
        assert f"[`{entry.id}`](environments/{entry.id[4:]}.md)" in written
        assert f'href="{entry.id[4:]}.html"' in cards
    assert cards.count('class="environment-card"') < len(ALL), "families are grouped"
    assert {path for path in environment_pages.pages() if path.endswith(".md")} >= set(listed)


def test_published_figures_say_where_they_stand_and_fit_their_columns() -> None:
    for fact in environment_pages.published_tables():
        assert set(fact["environments"]) <= set(IDS)
        assert re.search(r"Table|Fig|sec", fact["source"])
        assert all(len(cells) == len(fact["columns"]) for cells in fact["rows"].values())


def test_our_results_are_of_five_published_seeds_the_best_first(monkeypatch) -> None:
    columns = ["mode", "agent", "env", "score", "seconds", "seed", "rounds"]
    seeds = {"MCBO": 20, "CBO": 5, "GP-UCB": 4}
    runs = [
        ("hard", agent, "CBO/ToyGraph-v0", seed / 100, 0.1, seed, 100)
        for agent, count in seeds.items()
        for seed in range(count)
    ]
    runs += [("hard", "MCBO", "CBO/ToyGraph-v0", 0.9, 0.1, seed, 50) for seed in range(20)]
    monkeypatch.setattr(
        agent_results, "published_runs", lambda for_publication: pl.DataFrame(runs, columns, orient="row")
    )
    agent_results.ranking.cache_clear()
    page = environment_pages.page(next(one for one in ALL if one.entry.id == "CBO/ToyGraph-v0"))
    agent_results.ranking.cache_clear()
    assert "after 100 rounds" in page
    assert re.findall(r"\| (0\.\d+ ± 0\.\d+) \| +(\d+) \|", page) == [("0.095 ± 0.028", "20"), ("0.020 ± 0.020", "5")]


@pytest.mark.parametrize("env_id", ["CBO/GPBandit1-v0", "CBO/ToyGraph-v0", "CBO/SSEMPeriodic-v1", "CBO/CoCaFig1-v0"])
def test_landscapes_hold_the_optimum_and_nothing_above_it(env_id: str) -> None:
    one = next(one for one in ALL if one.entry.id == env_id)
    best = one.entry.optimum
    assert best is not None
    found = landscapes.landscape_of(one.dynamics, best)
    shown = [np.concatenate([curve.y for curve in panel.curves]) for panel in found.panels if panel.curves]
    shown += [panel.values.ravel() for panel in found.panels if panel.values.size]
    shown += [np.array([bar[1] for bar in panel.bars]) for panel in found.panels if panel.bars]
    highest, gap = max(map(np.max, shown)), best.value - best.random_value
    if one.entry.mode is Mode.CONTEXTUAL:  # where the best depends on the context
        (panel,) = found.panels
        np.testing.assert_allclose(panel.path[1], -panel.path[0])
        middle = panel.values[:, len(panel.x) // 2]
        assert panel.y[int(np.argmax(middle))] == pytest.approx(panel.path[1][len(panel.x) // 2], abs=0.05)
    else:
        assert best.value - 0.1 * gap < highest < best.value + 0.01 * gap
        assert "optimum" in found.levels


def test_an_environment_without_a_recorded_optimum_has_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    best = ALL[0].entry.optimum
    assert environment_pages.without_rounding_error(-7e-27 * (best.value - best.random_value), best) == 0.0
    assert environment_pages.without_rounding_error(1e-3, best) == 1e-3
    one = Environment(ALL[0].entry.model_copy(update={"optimum": None}))
    assert landscapes.landscape_of(one.dynamics, None) is None
    svg = svg_of(graph_of(one.dynamics).figure)
    width, height = size_of(svg)
    assert min(width, height) > 100
    assert "#2b3440" in svg
    assert "#2b3440" not in dark(svg)
    assert dark(svg).count("<text") == svg.count("<text") > 0
    monkeypatch.setattr(environment_pages, "ranking", dict)
    monkeypatch.setitem(one.__dict__, "pictures", DRAWN._replace(landscape=""))
    text = environment_pages.page(one)
    assert f"`cbo-gym optimum {one.entry.id}` computes it" in text
    assert "-landscape" not in text
