"""The page in a browser: a study from creation to export, narrow and wide, light and dark, without a network."""

import shutil
import subprocess
import sys

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

from cbo_gym.study import load_study
from tests.support.studies import FERMENTER, simulate
from tests.support.study_visitor import YAML

CHROMIUM = shutil.which("chromium")
#: options with which a browser runs as root too, and requests nothing by itself
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
ARGUMENTS += ["--disable-component-update", "--disable-sync"]
PATIENCE = 180_000  # milliseconds: where many tests run at once, to load what an agent needs takes a while
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")]


class Served:
    """The page of a database, served by the command line."""

    def __init__(self, database, *options):
        words = ["-m", "cbo_gym", "study", "serve", str(database), "--port", "0", "--no-browser", *options]
        self._process = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True)
        self.address = self._process.stdout.readline().partition(" is served at ")[2].partition(";")[0]

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        self._process.terminate()
        self._process.communicate(timeout=60)


@pytest.fixture(scope="module")
def browser():
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield chromium
        chromium.close()


class Watched:
    """A browser's page of which every request is on the server's address and every word of its console is heard."""

    def __init__(self, browser, address, scripts=True, **options):
        self.context = browser.new_context(base_url=address, java_script_enabled=scripts, **options)
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.complaints = []
        self.page.on("console", lambda message: message.type == "error" and self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: request.url.startswith(address) or self.complaints.append(request.url))

    def check(self):
        """Nothing is wrong with the page as it is shown."""
        found = Axe().run(self.page).response["violations"]
        assert [(one["id"], one["nodes"][0]["target"]) for one in found] == []
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert self.page.evaluate(wide) == 0, "nothing but tables is wider than the page"
        assert [string for string in self.complaints if "status of 422" not in string] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_a_study_in_a_browser(tmp_path, browser, width, scheme):
    path = tmp_path / "f.db"
    with Served(path) as served:
        watched = Watched(browser, served.address, viewport={"width": width, "height": 900}, color_scheme=scheme)
        page = watched.page

        def stored():
            return load_study(storage=path)

        page.goto("/")
        watched.check()
        page.get_by_label("Name", exact=False).first.fill("fermenter")
        page.get_by_label("Variable required").fill("titre")
        page.get_by_label("Causal diagram").fill("dag { feed -> }")
        for row, (name, (low, high)) in enumerate(FERMENTER["settable"].items(), start=1):
            for field, string in (("name", name), ("lowest", low), ("highest", high)):
                page.get_by_label(f"Row {row}: {field}").fill(str(string))
        page.get_by_label("Agent").fill("GP-UCB")
        create = page.get_by_label("New study from fields").get_by_role("button", name="Create the study")
        create.click()
        expect(page.get_by_role("alert")).to_be_visible()
        watched.check()
        expect(page.get_by_label("Row 2: lowest")).to_have_value("5.5")
        page.get_by_label("Causal diagram").fill(FERMENTER["diagram"])
        create.click()
        expect(page.locator(".success")).to_contain_text("The study was created")
        watched.check()

        lines = [simulate({}) | {"do(ph)": ""}, simulate({"ph": 7.0}) | {"do(ph)": 7.0}]
        content = "\n".join([",".join(lines[0]), *(",".join(map(str, line.values())) for line in lines)])
        file = {"name": "past.csv", "mimeType": "text/csv", "buffer": content.encode()}
        page.get_by_label("CSV or Excel file of past rounds").set_input_files(file)
        page.get_by_role("button", name="Import").click()
        expect(page.locator(".success")).to_have_text("2 rounds were added.")

        page.get_by_label("Trials to run at once").fill("3")
        page.get_by_role("button", name="Ask what to try next").click()
        expect(page.locator(".success")).to_contain_text("Trials 1 to 3")
        watched.check()

        card = page.locator("#trial-1")
        name = next(name for name in ("ph", "feed") if card.locator(f'input[name="did:{name}"]').count())
        card.locator("summary").first.click()
        card.locator(f'input[name="did:{name}"]').fill("5.75")
        for variable in ("feed", "ph", "biomass", "titre"):
            field = card.locator(f'input[name="value:{variable}"]')
            if field.count():
                field.fill("1.5")
        card.get_by_role("button", name="Record the outcome").click()
        expect(page.locator(".success")).to_have_text("The outcome of trial 1 was recorded.")
        assert stored().trials[0].values[name] == 5.75
        assert stored().trials[0].done is not None

        page.locator("#what-if").get_by_label("ph").fill("7")
        page.get_by_role("button", name="Predict").click()
        expect(page.locator("#expected")).to_contain_text("titre")
        expect(page.locator("#report svg").first).to_be_visible()
        watched.check()


def test_an_open_page_hears_of_what_others_did(tmp_path, browser):
    with Served(tmp_path / "f.db") as served:
        watched = Watched(browser, served.address)
        watched.page.goto("/new")
        watched.page.get_by_label("Or paste YAML").fill(YAML)
        watched.page.get_by_label("New study from YAML").locator("button").click()
        news = watched.page.locator("#news")
        expect(news).to_be_hidden()
        load_study(storage=tmp_path / "f.db").ask()
        expect(news).to_be_visible()
        watched.check()
        news.get_by_role("link").click()
        expect(watched.page.locator("#trial-1")).to_be_visible()


def test_the_page_works_without_a_script_and_behind_a_token(tmp_path, browser):
    with Served(tmp_path / "f.db", "--host", "0.0.0.0", "--token", "sixteen letters!") as served:
        watched = Watched(browser, served.address.replace("0.0.0.0", "127.0.0.1"), scripts=False)
        page = watched.page
        page.goto("/new")
        page.get_by_label("Token").fill("sixteen letters?")
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("alert")).to_have_text("This is not the token of this server.")
        page.get_by_label("Token").fill("sixteen letters!")
        page.get_by_role("button", name="Log in").click()
        page.get_by_label("Or paste YAML").fill(YAML)
        page.get_by_label("New study from YAML").locator("button").click()
        page.get_by_role("button", name="Ask what to try next").click()
        page.locator("#trial-1 input[name='value:titre']").fill("1")
        page.locator("#trial-1").get_by_role("button", name="Record the outcome").click()
        expect(page.locator(".success")).to_have_text("The outcome of trial 1 was recorded.")
        link = page.get_by_role("link", name="Show it when it is ready")
        if link.count():  # the report took longer than the page waits
            link.click()
        expect(page.locator("#report svg").first).to_be_visible()
        assert page.context.cookies()[0]["httpOnly"]
