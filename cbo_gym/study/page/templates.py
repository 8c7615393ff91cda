"""Templates of the page, which escape every string."""

from __future__ import annotations

from typing import Any

from starlette.responses import HTMLResponse

from cbo_gym.study.report.page import templates
from cbo_gym.study.strings import lenient
from cbo_gym.study.units import written

_environment = templates("cbo_gym.study.page")
_environment.filters["written"] = written


def page(template: str, status: int = 200, **context: Any) -> HTMLResponse:
    """A page of a template. Input may hold strings that cannot be encoded, which are replaced."""
    return HTMLResponse(lenient(_environment.get_template(f"{template}.html").render(context)), status)


def plain_page(status: int, title: str, words: str) -> HTMLResponse:
    """A page with one message, mostly an error."""
    return page("message", status, title=title, words=words)
