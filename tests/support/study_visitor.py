"""A visitor of the page without a browser: reads its forms, fills them in and sends them."""

import re
from html.parser import HTMLParser

from starlette.testclient import TestClient

from cbo_gym.study.page import AccessPolicy, AgentPool, StudyService, agent_pool, make_app
from tests.support.studies import FERMENTER

ADDRESS = "http://127.0.0.1:8400"
# Two worker processes for all tests, since each takes seconds to start.
agent_pool.MAX_WORKERS = 2
POOL = AgentPool()


class Forms(HTMLParser):
    """The forms of a page by their ids: the address, and the fields that a browser would send."""

    def __init__(self, html):
        super().__init__()
        self.found, self._open, self._area, self._choice = {}, None, None, None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        values = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._open = self.found.setdefault(values.get("id", "form"), {"to": values["action"], "fields": []})
        elif self._open is None:
            return
        elif tag == "input" and "name" in values and values.get("type") != "file":
            self._open["fields"].append((values["name"], values.get("value", "")))
        elif tag == "textarea":
            self._area = (values["name"], "")
        elif tag == "select":
            self._choice = values["name"]
            self._open["fields"].append((self._choice, ""))
        elif tag == "option" and self._choice and ("selected" in values or not self._open["fields"][-1][1]):
            self._open["fields"][-1] = (self._choice, values["value"])

    def handle_data(self, data):
        if self._area is not None:
            self._area = (self._area[0], self._area[1] + data)

    def handle_endtag(self, tag):
        if tag == "textarea" and self._open is not None:
            self._open["fields"].append(self._area)
            self._area = None
        elif tag == "select":
            self._choice = None
        elif tag == "form":
            self._open = None


async def never(patience=None):
    return None


class StudiesWithoutReports(StudyService):
    """Studies whose reports are never ready, because working them out takes longer than all else."""

    def study(self, name):
        served = super().study(name)
        served.report = never
        return served


class Visitor:
    """Visits the page of a database.

    Args:
        storage: the database.
        token: token of the server.
        host: host on which the server listens.
        trusted: import paths of trusted agents.
        address: address of the page.
        reports: whether the page shows reports.
    """

    def __init__(self, storage, token=None, host="127.0.0.1", trusted=(), address=ADDRESS, reports=False):
        self.access = AccessPolicy(host, token)
        self.service = (StudyService if reports else StudiesWithoutReports)(storage, POOL, trusted)
        self.app = make_app(self.service, self.access)
        self.client = TestClient(self.app, base_url=address, raise_server_exceptions=False, follow_redirects=False)
        self.html, self.answer = "", None

    def get(self, path, status=200, **more):
        """Return the text of a page."""
        return self._read(self.client.get(path, **more), status)

    def send(self, form, typed=(), status=303, files=None):
        """Send a form of the last page with some fields changed, and follow the redirect."""
        to, fields = Forms(self.html).found[form].values()
        data = {}
        for name, value in fields:
            data.setdefault(name, []).append(value)
        data |= {name: value if isinstance(value, list) else [value] for name, value in dict(typed).items()}
        string = self._read(self.client.post(to, data=data, files=files), status)
        return self.get(self.answer.headers["location"]) if status == 303 else string

    def post(self, path, data=None, status=303, **more):
        """Send data that no form of a page would send, with the token of the forms."""
        return self._read(self.client.post(path, data={"forgery": self.access.forgery, **(data or {})}, **more), status)

    def _read(self, answer, status):
        assert answer.status_code == status, answer.text
        self.answer, self.html = answer, answer.text
        return self.html


SQL, HTML = "'; DROP TABLE events; --", "<script>alert(1)</script>"


YAML = """\
name: fermenter
reward: titre
diagram: "dag { feed -> biomass -> titre; ph -> titre; feed <-> titre }"
settable: {feed: [0, 5], ph: [5.5, 7.5]}
units: {feed: g/h, titre: g/L}
agent: Random
"""


FIELDS = {
    "name": "fermenter",
    "reward": "titre",
    "diagram": FERMENTER["diagram"],
    "setting": ["feed", "ph", "", ""],
    "low": ["0", "5.5", "", ""],
    "high": ["5", "7.5", "", ""],
    "step": [""] * 4,
    "unit": ["g/h", "", "", ""],
    "cost": ["1", "10", "", ""],
    "units": "titre = g/L",
    "agent": "Random",
    "horizon": "12",
}


def said(html):
    """Return the messages in the page's boxes for errors and successes."""
    return re.findall(r'<p class="(?:wrong|success)"[^>]*>\s*(.*?)\s*</p>', html, re.DOTALL)
