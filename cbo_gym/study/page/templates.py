"""Templates of the page, which escape every string."""

from __future__ import annotations

from typing import Any

from starlette.responses import HTMLResponse

from cbo_gym.study.precision import format_precision
from cbo_gym.study.report.page import templates
from cbo_gym.study.strings import replace_surrogates
from cbo_gym.study.units import format_value

_environment = templates("cbo_gym.study.page")
_environment.filters["format_value"] = format_value
_environment.globals["format_precision"] = format_precision


def page(template: str, status: int = 200, **content: Any) -> HTMLResponse:
    """Render a template as a page. Characters of the input that cannot be encoded are replaced."""
    return HTMLResponse(replace_surrogates(_environment.get_template(f"{template}.html").render(content)), status)


def plain_page(status: int, title: str, message: str) -> HTMLResponse:
    """Render a page with one message, mostly an error."""
    return page("message", status, title=title, message=message)
