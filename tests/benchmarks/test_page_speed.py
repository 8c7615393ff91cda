"""How long the page of a study takes: the first answer of a server, later ones, and what a browser shows first."""

import shutil

import pytest

from cbo_gym.study import load_study
from tests.support.studies import append, fermenter, simulate
from tests.support.study_visitor import Visitor

pytestmark = pytest.mark.benchmark(group="page")


@pytest.fixture(scope="module", params=[40, 10_000])
def database(request, tmp_path_factory):
    """A study with so many finished trials, and one that is pending."""
    path = tmp_path_factory.mktemp("page") / "f.db"
    study = fermenter(path, agent="Random", horizon=request.param)
    trials = [trial for _ in range(request.param // 40) for trial in study.ask(40)]
    outcomes = [("told", {"trial": trial.number, "values": simulate(trial.do), "done": None}) for trial in trials]
    append(path, outcomes)
    study.ask()
    return path


def test_first_answer(benchmark, database):
    """Of a server that has read nothing yet."""
    benchmark.pedantic(
        lambda visitor: visitor.get("/studies/1"), setup=lambda: ((Visitor(database, reports=True),), {}), rounds=5
    )


def test_next_answer(benchmark, database):
    """After a trial was finished."""
    visitor, study = Visitor(database, reports=True), load_study(storage=database)
    visitor.get("/studies/1")

    def finish_a_trial():
        trial = study.ask()
        study.tell(trial, simulate(trial.do))
        return (), {}

    benchmark.pedantic(lambda: visitor.get("/studies/1"), setup=finish_a_trial, rounds=5)


@pytest.mark.skipif(not shutil.which("chromium"), reason="needs chromium")
def test_first_paint(benchmark, database):
    """In a browser that has loaded nothing of it yet, of a server that has answered once."""
    from playwright.sync_api import sync_playwright

    from tests.support.study_browser import ARGUMENTS, Served

    paint = """new Promise(done => new PerformanceObserver(list => list.getEntriesByName("first-contentful-paint")
      .forEach(entry => done(entry.startTime))).observe({type: "paint", buffered: true}))"""
    with sync_playwright() as playwright, Served(database) as served:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)

        def seen():
            context = chromium.new_context()
            page = context.new_page()
            page.goto(f"{served.address}/studies/1")
            found = page.evaluate(paint)
            context.close()
            return found

        seen()
        benchmark.extra_info["first contentful paint, ms"] = [round(seen()) for _ in range(5)]
        benchmark.pedantic(seen, rounds=3)
        print(benchmark.extra_info)
        chromium.close()
