"""Seeds that are for publication alone: nothing is chosen by them, and verdicts that ask for them take no others."""

import re
from pathlib import Path

import pytest

from cbo_gym import evaluate
from cbo_gym.evaluation import load_published, publish
from cbo_gym.evaluation.play.grid import plan
from cbo_gym.evaluation.runs.results import name_of, save_run
from cbo_gym.evaluation.runs.suite_runs import describe_differences
from cbo_gym.evaluation.seed_ranges import PUBLICATION, TUNING, TUNING_INSTANCES, is_for_publication
from cbo_gym.evaluation.store import published
from cbo_gym.evaluation.suites import load
from tests.support.runs import STRICT, made_up_run
from website.pages import choice_evidence
from website.papers.published import seeds_note, suite_runs

ROOT = Path(__file__).parents[2]
#: numbers after a word for seeds: "seeds 0 to 4", "SEEDS = range(100, 110)", "instances 100, 101 and 102"
NUMBERS = re.compile(
    r"(?i)(?:seeds?|instances?|instance_seed|tuned_on)\b[\s=:]*(?:in\s|from\s)?(?:(?:list\()?range\(|\[|\()?\s*"
    r"((?:\d{1,4}\b(?:\s*(?:to|and|-|,|:)\s*)?)+)"
)
COUNTED = re.compile(r"range\(\s*(1\d{3})\s*,")  # from there on: seeds, whatever they are called
#: what says, or decides, by what defaults, rules and parameters were chosen
DOCUMENTS = [
    *sorted(ROOT.glob("agents/**/*.py")),
    *sorted(ROOT.glob("docs/methods/*.md")),
    *sorted(ROOT.glob("website/**/*.py")),
    ROOT / "docs" / "guide" / "method_changes.md",
    ROOT / "CHANGELOG.md",
    *sorted(ROOT.glob("examples/**/*.py")),
    *sorted(ROOT.glob("examples/*.yaml")),
    ROOT / "cbo_gym" / "evaluation" / "comparison" / "parameter_choice.py",
]


def taken(text):
    """The seeds and instances that a text names; of two numbers in a range or with "to" between them all."""
    found = set()
    for match in NUMBERS.finditer(text):
        numbers = list(map(int, re.findall(r"\d+", match[1])))
        is_range = "range(" in match[0] or re.search(r"\d\s*(?:to|-|:)\s*\d", match[1])
        found |= set(range(numbers[0], numbers[-1] + 1) if is_range else numbers)
    return found | set(map(int, COUNTED.findall(text)))


def test_a_page_with_a_publication_seed_is_found():
    for text in ("chosen on seeds 1000 to 1009", "SEEDS = range(990, 1001)", "tried on instances 300, 301 and 1999",
                 "TUNED_ON = range(1000, 1004)", "seeds=[100, 1500]", "instance_seed=1007",
                 "for seed in range(1000, 1010)", "np.arange(1000, 1004)", "list(range(1010, 1020))",
                 "seeds from 1010 on"):  # fmt: skip
        assert taken(text) & set(PUBLICATION), text
    for text in ("1000 samples a seed", "seeds 100 to 109 of 1000 rounds", "SEEDS = range(100, 110)", "seed 3, 1.5"):
        assert not taken(text) & set(PUBLICATION), text


def test_nothing_is_chosen_by_seeds_for_publication():
    found = {str(path.relative_to(ROOT)): taken(path.read_text(encoding="utf-8")) for path in DOCUMENTS}
    assert {path: seeds for path, seeds in found.items() if seeds & set(PUBLICATION)} == {}


def test_the_ranges_share_nothing():
    assert not {*TUNING, *TUNING_INSTANCES} & {*PUBLICATION}
    assert is_for_publication(1000, {})
    assert is_for_publication(1999, {"instance_seed": 1000, "dim": 3})
    assert not is_for_publication(999, {})
    assert not is_for_publication(1000, {"instance_seed": 200})


def test_a_suite_for_verdicts_plays_and_takes_these_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(published, "load_all", lambda: (STRICT,))
    assert [job.cell.seed for job in plan("Random", STRICT, None, tmp_path)] == [1000, 1001]
    for run in (evaluate("Random", "CBO/Dropwave-v0", seed, horizon=2) for seed in (1000, 1001)):
        save_run(tmp_path / "runs" / name_of(run), run)
    done = publish(tmp_path / "runs", tmp_path / "store", "strict")
    runs = load_published(done.path)
    assert [run.seed for run in runs] == [1000, 1001]
    assert list(describe_differences(STRICT, runs)) == []
    other = evaluate("Random", "CBO/Dropwave-v0", 3, horizon=2)
    save_run(tmp_path / "runs" / name_of(other), other)
    before = done.path.read_bytes()
    with pytest.raises(ValueError, match=r"1 runs have other seeds .*-v0, seed 3; the verdicts of strict take"):
        publish(tmp_path / "runs", tmp_path / "store", "strict")
    assert done.path.read_bytes() == before
    assert publish(tmp_path / "runs", tmp_path / "store", "my-trials").added == 3


def test_pages_of_a_suite_for_verdicts_leave_the_others_out():
    env = "CBO/ToyGraph-v0"
    runs = [made_up_run("MCBO", seed, [0.5] * 100, env, "hard") for seed in (0, 1, 1000, 1001)]
    suite = load("mcbo2023")
    assert {run.seed for run in suite_runs(suite, {"mcbo2023": runs})} == {1000, 1001}
    lax = suite.model_copy(update={"verdict_seeds": "any"})
    assert {run.seed for run in suite_runs(lax, {"mcbo2023": runs})} == {0, 1, 1000, 1001}


def test_a_suite_may_begin_with_a_later_one():
    later = load("mcbo2023").model_copy(update={"first_seed": 1010})
    assert later.seed_numbers() == range(1010, 1030)
    family = "CBO/ErdosRenyi10-v0(instance_seed={})".format
    taken = [later.counts(1010, family(1010)), later.counts(1009, family(1010)), later.counts(1010, family(1009))]
    assert taken == [True, False, False]
    assert "seeds and instances 1010 to 1999" in seeds_note(later)


def test_rules_are_not_chosen_by_them(tmp_path, monkeypatch):
    published.put(
        tmp_path / "mine.parquet", [evaluate("Random", "CBO/Dropwave-v0", seed, horizon=2) for seed in (0, 1000)]
    )
    monkeypatch.setattr(choice_evidence, "package_store", lambda: tmp_path)
    assert set(choice_evidence.published_runs()["seed"]) == {0}
    assert set(choice_evidence.published_runs(for_publication=True)["seed"]) == {PUBLICATION.start}
