"""The built site in a browser: nothing is cut off or out of reach, and little has to be loaded. Needs ``make docs``."""

import http.server
import re
import shutil
import threading
from functools import partial
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

SITE = Path(__file__).parents[2] / "site"
CHROMIUM = shutil.which("chromium")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
PAGES = [
    "index",
    "install",
    "faq",
    "glossary",
    "which_method",
    "leaderboard",
    "papers/mcbo2023",
    "papers/excbo2024",
    "papers/mocbo2025",
    "environments",
    "environments/gallery",
    "agents/index",
    "guide/stability",
    "api/cbo_gym.evaluation",
]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium"),
    pytest.mark.skipif(not (SITE / "index.html").is_file(), reason="needs 'make docs'"),
]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *said):
        pass


@pytest.fixture(scope="module")
def address():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture(params=["light", "dark"])
def scheme(request):
    return request.param


@pytest.fixture(params=[1280, 390])
def page(request, scheme, browser, address):
    size = {"width": request.param, "height": 800}
    context = browser.new_context(base_url=address, viewport=size, color_scheme=scheme)
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_accessible(page, path):
    page.goto(f"{path}.html", wait_until="networkidle")
    found = Axe().run(page).response["violations"]
    assert [(one["id"], node["target"]) for one in found for node in one["nodes"]] == []
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) == 0, "tables and code scroll in boxes of their own"


def test_links_within_the_site_lead_somewhere():
    pages = {path.relative_to(SITE).as_posix(): path.read_text(encoding="utf-8") for path in SITE.rglob("*.html")}
    del pages["404.html"]  # its links start at the root of a server
    places = {name: set(re.findall(r'\b(?:id|name)="([^"]+)"', text)) for name, text in pages.items()}
    broken = set()
    for name, text in pages.items():
        for link in re.findall(r'\b(?:href|src)="([^"]*)"', text):
            if re.match(r"[a-z]+:|//", link):
                continue
            path, place = urldefrag(unquote(unescape(link)))
            target = (SITE / name).parent / path.partition("?")[0] if path else SITE / name
            if target.is_dir():
                target /= "index.html"
            found = target.resolve().relative_to(SITE.resolve()).as_posix() if target.exists() else None
            if found is None or (place and found in places and place not in places[found]):
                broken.add((name, link))
    assert sorted(broken) == []
