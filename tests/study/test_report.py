"""The report of a study: what it says of a study in each mode, and that to write it changes nothing."""

import re
from itertools import combinations
from threading import Lock

import numpy as np
import pytest
from typer.testing import CliRunner

from cbo_gym.agents import Random
from cbo_gym.cli import app
from cbo_gym.errors import ArgumentError, ArgumentTypeError, OperationError
from cbo_gym.study import create_study, load_study
from cbo_gym.study.report import sections, style
from tests.support.studies import SOFT, events_of, fermenter, lose_caches, play, simulate, soft

NAMES = ["overview", "now", "curve", "stopping", "predictions", "trust", "system", "trials", "provenance"]


class Locked(Random):
    """Has a lock once it plays, so that it can no longer be copied."""

    def setup(self, seed):
        super().setup(seed)
        self.lock = Lock()


def of(study, **options):
    """Its sections by their ids."""
    return {re.search('id="([a-z]+)"', string)[1]: string for string in sections(study, **options)}


def words(string):
    return " ".join(re.sub("<[^>]*>", " ", string).split())


def test_a_report_of_each_part(tmp_path):
    study = fermenter(tmp_path / "f.db", agent="CBO", units={"titre": "g/l"}, costs={"feed": 1.0, "ph": 10.0})
    study.add_data([simulate({"feed": 1.0 + 0.1 * index}) for index in range(4)])
    play(study, 3)
    study.fail(study.ask(), "<script>alert(1)</script> & the pump")
    study.ask()
    parts = of(study)
    assert list(parts) == NAMES
    assert "3 measured, 1 pending, 1 failed" in words(parts["overview"])
    assert "4 rounds" in words(parts["overview"])
    assert "Suggested trials without an outcome" in words(parts["now"])
    assert "Recommended now" in words(parts["now"])
    assert re.search(r"titre \[g/l\] [-\d.]+ [-\d.]+ to [-\d.]+", words(parts["now"]))
    assert "95 % interval" in words(parts["curve"])
    for name in ("nothing set, only observe", "{feed}", "{ph}", "{feed, ph}"):
        assert f"<strong>{name}</strong>" in parts["predictions"]
    assert "feed and titre have a latent cause" in parts["system"]
    assert "ph 10" in words(parts["system"])
    assert "&lt;script&gt;" in parts["trials"]
    assert "numpy" in parts["provenance"]
    page = study.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert not re.search("<(script|link|img|iframe)", page)
    assert style() in page
    ids = re.findall(' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:url\(#|href="#)([\w-]+)', page)) <= set(ids)


@pytest.mark.parametrize(
    ("agent", "more", "outcome"),
    [("GP-UCB", {}, simulate), pytest.param("MCBO", SOFT, soft, marks=pytest.mark.slow)],
)
def test_a_report_changes_nothing_and_previews_what_comes(tmp_path, agent, more, outcome):
    study = play(fermenter(tmp_path / "f.db", agent=agent, **more), 3, outcome)
    events = events_of(tmp_path / "f.db")
    previewed = words(of(study, preview=True)["now"])
    assert words(of(study, preview=True)["now"]) == previewed
    assert events_of(tmp_path / "f.db") == events
    undisturbed = load_study(storage=tmp_path / "f.db")
    lose_caches(tmp_path / "f.db")
    trial = study.ask()
    for name, value in trial.do.items():
        assert f"{name} = {value:.4g}" in previewed
    assert undisturbed.ask(2)[0].number == trial.number + 1
    assert trial.do == undisturbed.pending[0].do


def test_soft_parameters_have_a_line_each_that_follows_the_predictions(tmp_path):
    study = play(fermenter(tmp_path / "f.db", agent="GP-UCB", **SOFT), 8, soft)
    string = of(study)["predictions"]
    assert re.findall("<strong>(.*?)</strong>", string) == ["feed", "ph"]
    expected = study.what_if(study.recommendation())["titre"]
    low, high = map(float, re.search(r"95 % interval ([-\d.e]+) to ([-\d.e]+)", string).groups())
    assert low < expected < high


def test_what_misses_a_constraint_is_not_best_and_little_may_be_good(tmp_path):
    limited = {"constraints": ["biomass <= 1.5"], "direction": "minimize"}
    study = fermenter(tmp_path / "f.db", agent="GP-UCB", **limited)
    study.add_data(
        [simulate({"feed": 4.0, "ph": 8.5}), simulate({"feed": 0.3, "ph": 6.0})],
        do=[{"feed": 4.0, "ph": 8.5}, {}],
    )
    play(study, 2, lambda do: simulate({"feed": 0.2, "ph": do.get("ph", 6.0)}))
    parts, rounds = of(study), study.data()
    allowed = rounds.filter(rounds["biomass"] <= 1.5)["titre"]
    assert "Crosses mark rounds whose measured values violate a constraint" in words(parts["curve"])
    assert f"Best measured {allowed.min():.4g} in" in words(parts["overview"])
    assert allowed.min() > rounds["titre"].min()
    assert re.search(r"biomass &lt;= 1.5</th><td>3 of 4", parts["system"])


def test_arms_that_cannot_be_best_are_folded(tmp_path):
    diagram = "dag { layout -> asks -> offer -> order; offer <-> order }"
    arms = [{}, {"layout": 0}, {"layout": 1}, {"offer": 0}, {"offer": 1}, {"layout": 1, "offer": 1}]
    about = {"mode": "discrete", "diagram": diagram, "reward": "order", "reward_range": (0, 1), "arms": arms}
    study = create_study("service", storage=tmp_path / "s.db", agent="POMIS-TS", horizon=30, **about)
    rng = np.random.default_rng(100)

    def visit(do):
        values = {name: float(do.get(name, rng.integers(2))) for name in ("layout", "offer")}
        return values | {"asks": 0.0, "order": float(rng.random() < 0.5 + 0.3 * values["offer"])}

    parts = of(play(study, 12, visit))
    assert "only 4 of the 6 arms can be optimal" in words(parts["predictions"])
    assert "2 arms that cannot be optimal by the diagram" in words(parts["predictions"])
    assert "nothing set; layout = 1, offer = 1" in words(parts["predictions"])


def test_contexts_and_cells(tmp_path):
    about = {"mode": "contextual", "diagram": "dag { age -> health; dose -> health }", "reward": "health"}
    about |= {"settable": {"dose": (0, 2)}, "contexts": ["age"], "agent": "CoCaBO", "horizon": 20}
    study = create_study("dosing", storage=tmp_path / "d.db", **about)
    for age in (40.0, 60.0, 80.0):
        trial = study.ask(context={"age": age})
        dose = trial.do.get("dose", 1.0)
        study.tell(trial, {"age": age, "dose": dose, "health": 1 - (dose - age / 60) ** 2})
    parts = of(study)
    assert "the mean health of the last 10 rounds" in words(parts["curve"])
    assert "The line is for the context of the last trial, age = 80" in words(parts["predictions"])
    assert "for age = 80" in words(parts["now"])
    about = {"mode": "aggregated", "diagram": "dag { growth -> yield }", "reward": "yield", "agent": "GPOO"}
    about |= {"parameters": {"nitrogen": {"node": "growth", "bounds": (0, 200)}}, "horizon": 20}
    field = create_study("field", storage=tmp_path / "f.db", **about)
    play(field, 5, lambda do: {"growth": 1.0, "yield": -abs(np.mean(do["nitrogen"]) - 120) / 100})
    assert "<strong>nitrogen</strong>" in of(field)["predictions"]


def test_an_agent_without_a_model_is_described_and_older_trials_are_folded(tmp_path):
    for agent, said in (("Random", "has no model"), (Locked(), "cannot be asked")):
        study = fermenter(tmp_path / f"{said}.db", agent=agent)
        assert "Nothing is known yet" in words(of(study)["predictions"])
        assert "curve" not in of(study)
        assert said in words(of(play(study, 2))["predictions"])
        if agent == "Random":
            study.ask(51)
            string = of(study)["trials"]
            assert "<summary>3 older trials</summary>" in string
            assert string.index('<th scope="row">53<') < string.index("<details>") < string.index('<th scope="row">3<')


def test_of_many_sets_those_tried_most_are_shown(tmp_path):
    names = ["a", "b", "c", "d"]
    targets = [list(chosen) for size in range(4) for chosen in combinations(names, size)][:14]
    about = {"diagram": f"dag {{ {'; '.join(f'{name} -> y' for name in names)} }}", "reward": "y", "agent": "GP-UCB"}
    about |= {"settable": dict.fromkeys(names, (0, 1)), "targets": targets, "horizon": 20}
    study = create_study("many", storage=tmp_path / "m.db", **about)
    study.add_data([dict.fromkeys(["y", *names], 0.5)] * 2, do=[{"a": 0.5, "c": 0.5, "d": 0.5}] * 2)
    string = words(of(study)["predictions"])
    assert "{a, c, d} along" in string
    assert "2 more, which were tried less often, are not shown" in string


def test_a_report_is_written_to_an_html_file_alone_and_makes_its_folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = fermenter("f.db", agent="Random")
    before = (tmp_path / "f.db").read_bytes()
    for path, message in (
        (".", r"\. is a folder; give a file in it, such as new\.html"),
        ("", r"\. is a folder; give a file in it, such as new\.html"),
        ("r.pdf", r"r\.pdf does not end in \.html or \.htm, .* such as r\.html"),
        ("r", r"r does not end in .* such as r\.html"),
        ("f.db", r"f\.db does not end in .* such as f\.html"),
    ):
        with pytest.raises(ArgumentError, match=message):
            study.report(path)
        done = CliRunner().invoke(app, ["study", "report", "f.db", path])
        assert done.exit_code == 2
        assert done.stderr.startswith("Error: ")
    with pytest.raises(ArgumentTypeError, match="must be given by its path; given None"):
        study.report(None)
    assert [found.name for found in tmp_path.iterdir()] == ["f.db"]
    assert (tmp_path / "f.db").read_bytes() == before
    for path in ("new/r.html", "R.HTM"):
        assert study.report(str(tmp_path / path)) == tmp_path / path
    with pytest.raises(OperationError, match=r"r\.html: .*; a folder of this path is a file; give another path"):
        study.report(tmp_path / "f.db" / "r.html")
