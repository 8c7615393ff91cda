"""What the papers' pages ask for on seeds for publication, what of it is missing, and how it is played."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cbo_gym.evaluation import load_runs
from cbo_gym.evaluation.claims.papers import ClaimEntry, Exhibit, Paper, papers
from tests.support.runs import made_up_run
from website.papers import runs as page_runs
from website.papers.runs import RequestedRun, estimate, grids, missing_runs, play, requested_runs

TOY = "CBO/ToyGraph-v0"
FAMILY = "CBO/ErdosRenyi10-v0(instance_seed={})"


def paper(suite: str, *exhibits: Exhibit) -> Paper:
    about = {"short": "S", "title": "T", "authors": "A", "setting": "S", "rounds": 100, "seeds": 10, "agents": ["MCBO"]}
    return Paper(suite=suite, exhibits=list(exhibits), **about)  # type: ignore[arg-type]


def exhibit(envs: list[str], agents: list[str], *claims: ClaimEntry) -> Exhibit:
    return Exhibit(
        name="Figure 1", shows="S", quantity="average_regret", environments=envs, agents=agents, claims=list(claims)
    )


def test_claims_ask_for_their_pairs_and_come_first_exhibits_for_those_of_the_paper() -> None:
    said = ClaimEntry(statement="x", better="MCBO", worse=["CBO"], envs=[TOY], rules={"pairs": 12})  # type: ignore[arg-type]
    found = requested_runs(paper("mcbo2023", exhibit([TOY], ["Random", "MCBO"], said)))
    seeds = {"MCBO": 12, "CBO": 12, "Random": 10}
    each = ((agent, 1000 + seed) for agent, count in seeds.items() for seed in range(count))
    assert found == [RequestedRun(agent, TOY, 100, seed, "powers") for agent, seed in each]


def test_instances_are_units_settings_are_those_of_other_labels_and_horizons_the_registered_ones() -> None:
    counted = requested_runs(paper("cbou2025", exhibit([FAMILY.format("*")], ["Random"])))
    assert counted == [RequestedRun("Random", FAMILY.format(seed), 40, 1000, "powers") for seed in range(1000, 1010)]
    together = grids(requested_runs(paper("cbou2025", exhibit([FAMILY.format("*"), TOY], ["Random"]))))
    assert [(len(one.envs), len(one.seeds)) for one in together] == [(10, 1), (1, 10)]
    named = requested_runs(paper("cbou2025", exhibit([FAMILY.format(1003)], ["Random"])))
    assert named == [RequestedRun("Random", FAMILY.format(1003), 40, 1000, "powers")]
    cells = "CBO/GPBandit3-Published-v0(arity={}, points={})".format
    settings = requested_runs(paper("gpoo2022", exhibit([cells("*", 10), cells(2, "*"), cells(5, "*")], ["GPOO"])))
    assert {one.env for one in settings} == {cells(2, 10), cells(5, 10)}
    own = requested_runs(paper("ccbo2023", exhibit(["CBO/CCBOSynthetic1-v0"], ["Random"])))
    longer = exhibit([TOY], ["Random"]).model_copy(update={"horizon": 150})
    assert {one.horizon for one in [*own, *requested_runs(paper("mcbo2023", longer))]} == {50, 150}
    of_modes = requested_runs(paper("mcbo2023", exhibit([TOY, "CBO/Ackley-v0"], ["CBO", "Random"])))
    assert {(one.agent, one.env) for one in of_modes} == {
        ("CBO", TOY), ("Random", TOY), ("Random", "CBO/Ackley-v0")
    }, "methods play those whose mode is theirs"  # fmt: skip


@pytest.mark.parametrize(("rounds", "after", "every"), [([5], None, True), ([], 5, True), ([], None, False)])
def test_recommendations_in_the_middle_ask_for_all(rounds: list[int], after: int | None, every: bool) -> None:
    said = ClaimEntry(statement="x", better="MCBO", worse=["Random"], envs=[TOY], by="simple_regret", after=after)
    shown = exhibit([TOY], ["MCBO"], said).model_copy(update={"quantity": "simple_regret", "rounds": rounds})
    of_both = paper("mcbo2023", shown)
    assert {one.recommend for one in requested_runs(of_both)} == {"every" if every else "powers"}
    runs = [made_up_run("MCBO", 1000 + seed, [0.5] * 100, TOY, "hard") for seed in range(10)]
    rare, often = ([replace(run, recommend=how) for run in runs] for how in ("powers", "every"))
    assert len(missing_runs(of_both, rare)) == (20 if every else 10)
    assert len(missing_runs(of_both, often)) == 10


def test_missing_is_what_the_store_has_no_run_of_as_long() -> None:
    runs = [made_up_run("MCBO", 1000 + seed, [0.5] * (100 if seed < 4 else 50), TOY, "hard") for seed in range(10)]
    found = missing_runs(paper("mcbo2023", exhibit([TOY], ["MCBO"])), runs)
    assert [one.seed for one in found] == [*range(1004, 1010)]


def test_runs_are_played_once_and_estimates_are_those_of_a_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_runs, "ROOT", tmp_path)
    (tmp_path / "results").mkdir()  # nothing is published
    wanted = [RequestedRun("Random", TOY, 3, seed, "powers") for seed in range(1003, 999, -1)]
    for _ in range(2):
        play(wanted[:1], tmp_path / "runs", jobs=1)
        (run,) = load_runs(tmp_path / "runs")
    assert estimate(wanted, tmp_path / "runs") == pytest.approx(3 * 3 * run.seconds_a_round)


def test_every_paper_asks_for_seeds_for_publication_alone() -> None:
    for one in papers():
        assert (found := requested_runs(one)), one.suite
        assert all(1000 <= run.seed < 2000 and "*" not in run.env for run in found), one.suite


def test_the_command_says_what_is_missing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["page_runs.py", "gpoo2022"])
    monkeypatch.setattr(page_runs, "load_published", lambda *given, **named: [])
    monkeypatch.setattr(page_runs, "estimate", lambda *given: 5400.0)
    page_runs.main()
    count = len(requested_runs(next(one for one in papers() if one.suite == "gpoo2022")))
    printed = capsys.readouterr().out
    assert printed == f"gpoo2022: {count} runs asked for, {count} missing, about 1.5 core hours\n"
