"""Routes of the page of studies."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

import polars as pl
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.staticfiles import StaticFiles

from cbo_gym.agent_finder import known_agents
from cbo_gym.errors import ArgumentError, CBOGymError, OperationError
from cbo_gym.files import csv_of
from cbo_gym.study.expectation import Expectation
from cbo_gym.study.page import thinker
from cbo_gym.study.page.access import COOKIE, AccessPolicy, same
from cbo_gym.study.page.guard import MAX_BYTES, Guard
from cbo_gym.study.page.service import Case, StudyService
from cbo_gym.study.page.templates import page, plain_page
from cbo_gym.study.page.typed import CONTEXT, DO, Typed, asked_number, content_of, description, numbers, text, texts_of
from cbo_gym.study.page.views import Problem, card_of, counts, expected_context, outcome_of, study_context
from cbo_gym.study.report import style
from cbo_gym.study.study import Study
from cbo_gym.yaml_files import Lines, parse_yaml

STATIC = Path(__file__).parent / "static"
FIRST_ROWS = 4  # of what may be set, in an empty form
MAX_FIELDS = 3000  # of a form
# A number in an address.
NUMBER = re.compile("[0-9]{1,9}")
routes = APIRouter(default_response_class=HTMLResponse)


def make_app(service: StudyService, access: AccessPolicy) -> FastAPI:
    """The page of a database's studies.

    Args:
        service: the studies.
        access: the policy of access.
    """
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, title="cbo-gym study")
    app.state.service, app.state.access = service, access
    app.include_router(routes)
    app.mount("/static", StaticFiles(directory=STATIC))
    for kind in (StarletteHTTPException, RequestValidationError, CBOGymError):
        app.add_exception_handler(kind, _failed)
    app.add_middleware(Guard, access=access)
    return app


# Errors ------------------------------------------------------------------------------------------------------


async def _failed(request: Request, error: Exception) -> Response:
    if isinstance(error, RequestValidationError):
        return plain_page(404, "No such page", "Studies and trials are found by whole numbers.")
    if isinstance(error, StarletteHTTPException):
        title = "No such page" if error.status_code == 404 else "Refused"
        return plain_page(error.status_code, title, str(error.detail))
    return plain_page(_status(error), "This does not work", request.app.state.service.in_words(error))


def _status(error: Exception) -> int:
    """Status of the answer: 503 if the database cannot do it now, 422 if the input is wrong."""
    return 503 if isinstance(error, OperationError) else 422


# What routes take --------------------------------------------------------------------------------------------


def _service(request: Request) -> StudyService:
    return request.app.state.service


TheService = Annotated[StudyService, Depends(_service)]


async def _names(service: TheService) -> list[str]:
    return await run_in_threadpool(service.names)


Names = Annotated[list[str], Depends(_names)]


async def _case(index: int, service: TheService, names: Names) -> Case:
    if not 1 <= index <= len(names):
        raise HTTPException(404, f"There is no study {index}; {service.called} has {len(names)}.")
    return await run_in_threadpool(service.case, names[index - 1])


async def _form(request: Request) -> AsyncIterator[FormData]:
    """The fields of a form, if it has the token of this server."""
    async with request.form(max_files=1, max_fields=MAX_FIELDS, max_part_size=MAX_BYTES) as form:
        given = form.get("forgery")
        if not isinstance(given, str) or not same(given, request.app.state.access.forgery):
            raise HTTPException(
                403, "The form is of another run of the server; go back, reload the page, send it again."
            )
        yield form


TheCase = Annotated[Case, Depends(_case)]
Form = Annotated[FormData, Depends(_form)]


def _page(request: Request, template: str, status: int = 200, **context: Any) -> Response:
    called, forgery = request.app.state.service.called, request.app.state.access.forgery
    return page(template, status, called=called, forgery=forgery, **context)


def _done(index: int, what: str, **more: int) -> Response:
    """Redirect to the page of the study, which says what was done; a reload does not repeat it."""
    return RedirectResponse(f"/studies/{index}?{urlencode({'done': what, **more})}", 303)


# Logging in --------------------------------------------------------------------------------------------------


@routes.get("/login")
async def show_login() -> Response:
    return page("login", wrong=False)


@routes.post("/login")
async def login(request: Request) -> Response:
    """Log in. This form has no forgery token, because visitors who are not logged in must not see it."""
    access: AccessPolicy = request.app.state.access
    async with request.form(max_files=0, max_fields=1) as form:
        given = text(texts_of(form), "token")
    if access.token is not None and not same(given, access.token):
        return page("login", 403, wrong=True)
    answer = RedirectResponse("/", 303)
    answer.set_cookie(COOKIE, access.session, httponly=True, samesite="strict")
    return answer


# Studies -----------------------------------------------------------------------------------------------------


@routes.get("/")
async def show_studies(request: Request, service: TheService, names: Names) -> Response:
    """All studies; the only one itself."""
    if len(names) == 1:
        return RedirectResponse("/studies/1", 303)
    if not names:
        return RedirectResponse("/new", 303)
    return _page(request, "studies", studies=await run_in_threadpool(_listed, service, names))


def _listed(service: StudyService, names: list[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for index, name in enumerate(names, start=1):
        try:
            case = service.case(name)
            found.append({"index": index, "name": name, "about": case.about, "counts": counts(case.seen())})
        except CBOGymError as error:
            found.append({"index": index, "name": name, "error": service.in_words(error)})
    return found


@routes.get("/new")
async def show_new(request: Request, names: Names) -> Response:
    return _new(request, names, None)


def _new(request: Request, names: list[str], problem: Problem | None, rows: int = FIRST_ROWS) -> Response:
    typed, status = (problem.typed, problem.status) if problem else ({}, 200)
    context = {"problem": problem, "agents": known_agents(), "rows": rows, "first": not names}
    return _page(request, "new", status, typed=typed, **context)


def _problem(request: Request, form: str, error: Exception, typed: Typed) -> Problem:
    return Problem(form, request.app.state.service.in_words(error), typed, _status(error))


@routes.post("/new")
async def create(request: Request, form: Form, service: TheService, names: Names) -> Response:
    typed = texts_of(form)
    rows = max(FIRST_ROWS, len(typed.get("thing", [])))
    if "more" in typed:
        return _new(request, names, Problem("", "", typed, 200), 2 * rows)
    try:
        name = await service.create(partial(_fields_of, typed))
    except CBOGymError as error:
        return _new(request, names, _problem(request, "create", error, typed), rows)
    return await _created(service, name)


@routes.post("/new/yaml")
async def create_from_yaml(request: Request, form: Form, service: TheService, names: Names) -> Response:
    typed, content = texts_of(form), await content_of(form, "file")
    try:
        name = await service.create(partial(_parsed, content, text(typed, "yaml")))
    except CBOGymError as error:
        return _new(request, names, _problem(request, "yaml", error, typed))
    return await _created(service, name)


def _fields_of(typed: Typed) -> tuple[dict[str, Any], Lines]:
    return description(typed), Lines(None)


def _parsed(uploaded: bytes, pasted: str) -> tuple[Any, Lines]:
    return parse_yaml(_one_of(uploaded, pasted, "YAML"))


def _one_of(uploaded: bytes, pasted: str, what: str) -> bytes:
    if bool(uploaded) == bool(pasted):
        given = "both" if uploaded else "neither"
        raise ArgumentError(f"choose a file, or paste its {what}; {given} was given")
    # Half of a surrogate pair stays as it is, for the reader to refuse.
    return uploaded or pasted.encode(errors="surrogatepass")


async def _created(service: StudyService, name: str) -> Response:
    names = await run_in_threadpool(service.names)
    return _done(names.index(name) + 1, "created")


# One study ---------------------------------------------------------------------------------------------------


@routes.get("/studies/{index}")
async def show_study(request: Request, index: int, case: TheCase) -> Response:
    return await _study(request, index, case)


async def _study(
    request: Request,
    index: int,
    case: Case,
    problem: Problem | None = None,
    expected: Mapping[str, Any] | None = None,
) -> Response:
    seen = await run_in_threadpool(case.seen)
    context = study_context(case, seen, problem)
    context |= {"index": index, "report": await case.report(), "expected": expected, "said": _said(request)}
    return _page(request, "study", problem.status if problem else 200, **context)


def _said(request: Request) -> dict[str, Any]:
    """The message in the address about what was just done: one of a few, and whole numbers."""
    given = request.query_params
    numbers_given = {name: int(given[name]) for name in ("trial", "count") if NUMBER.fullmatch(given.get(name, ""))}
    return {"done": given.get("done", ""), "trial": 0, "count": 1, **numbers_given}


@routes.get("/studies/{index}/report")
async def show_report(request: Request, index: int, case: TheCase) -> Response:
    """The report alone, however long it takes; the script of the page loads it too."""
    parts = await case.report(None)
    return _page(request, "report", index=index, about=case.about, report=parts)


@routes.get("/report.css")
async def report_style() -> Response:
    return Response(style(), media_type="text/css")


@routes.get("/studies/{index}/state")
async def state(case: TheCase) -> Response:
    """The number of the last event, by which an open page notices that it is out of date."""
    return JSONResponse({"event": await run_in_threadpool(getattr, case.study, "events")})


@routes.get("/studies/{index}/trials.csv")
async def export_trials(index: int, case: TheCase) -> Response:
    return _csv(await run_in_threadpool(case.study.to_frame), f"study-{index}-trials.csv")


@routes.get("/studies/{index}/data.csv")
async def export_data(index: int, case: TheCase) -> Response:
    """All rounds, as another study can import them."""
    return _csv(await run_in_threadpool(case.study.data), f"study-{index}-data.csv")


def _csv(frame: pl.DataFrame, called: str) -> Response:
    named = {"Content-Disposition": f'attachment; filename="{called}"'}
    return Response(csv_of(frame), media_type="text/csv; charset=utf-8", headers=named)


@routes.get("/studies/{index}/what-if")
async def what_if(request: Request, index: int, case: TheCase) -> Response:
    """The agent's expectation; nothing is recorded, so it is a link that can be kept."""
    typed = {name: [one.strip() for one in request.query_params.getlist(name)] for name in request.query_params}
    try:
        found = Expectation(*await case.call(thinker.what_if, numbers(typed, DO), numbers(typed, CONTEXT) or None))
    except CBOGymError as error:
        return await _study(request, index, case, _problem(request, "what-if", error, typed))
    return await _study(request, index, case, Problem("what-if", "", typed, 200), expected_context(case, found))


@routes.post("/studies/{index}/ask")
async def ask(request: Request, index: int, case: TheCase, form: Form) -> Response:
    typed = texts_of(form)
    try:
        count = asked_number(text(typed, "count") or "1")
        trials = await case.call(thinker.ask, count, numbers(typed, CONTEXT) or None)
    except CBOGymError as error:
        return await _study(request, index, case, _problem(request, "ask", error, typed))
    return _done(index, "asked", trial=trials[0], count=len(trials))


@routes.post("/studies/{index}/import")
async def import_data(request: Request, index: int, case: TheCase, form: Form) -> Response:
    typed, content = texts_of(form), await content_of(form, "file")
    # White space at both ends of what is pasted may be empty cells.
    pasted = str(form.get("csv") or "")
    try:
        table = _one_of(content, pasted if pasted.strip() else "", "CSV")
        count = await case.call(thinker.add_data, table, text(typed, "ignore").splitlines())
    except CBOGymError as error:
        return await _study(request, index, case, _problem(request, "import", error, typed))
    return _done(index, "imported", count=count)


# One trial ---------------------------------------------------------------------------------------------------


@routes.get("/studies/{index}/trials/{trial}")
async def show_trial(request: Request, index: int, trial: int, case: TheCase) -> Response:
    return await _trial(request, index, trial, case)


async def _trial(request: Request, index: int, trial: int, case: Case, problem: Problem | None = None) -> Response:
    seen = await run_in_threadpool(case.seen)
    if trial not in seen.entries:
        words = problem.words if problem else f"there is no trial {trial}; there are {len(seen.entries)}"
        return plain_page(problem.status if problem else 404, "No such trial", words)
    kind = "correct" if seen.entries[trial].status == "told" else "tell"
    # The trial may have ended meanwhile.
    if problem is not None and problem.form != f"fail-{trial}":
        problem = replace(problem, form=f"{kind}-{trial}")
    card = card_of(case, seen, trial, problem, f"{kind}-{trial}")
    context = {"index": index, "about": case.about, "card": card, "problem": problem}
    return _page(request, "trial", problem.status if problem else 200, **context)


@routes.post("/studies/{index}/trials/{trial}/tell")
async def tell(request: Request, index: int, trial: int, case: TheCase, form: Form) -> Response:
    return await _outcome(request, index, trial, case, form, Study.tell)


@routes.post("/studies/{index}/trials/{trial}/correct")
async def correct(request: Request, index: int, trial: int, case: TheCase, form: Form) -> Response:
    return await _outcome(request, index, trial, case, form, Study.correct)


async def _outcome(
    request: Request, index: int, trial: int, case: Case, form: FormData, call: Callable[..., None]
) -> Response:
    typed, seen = texts_of(form), await run_in_threadpool(case.seen)
    values, did = outcome_of(case, seen, trial, typed)
    kind = call.__name__
    try:
        await run_in_threadpool(call, case.study, trial, values, did=did)
    except CBOGymError as error:
        return await _trial(request, index, trial, case, _problem(request, f"{kind}-{trial}", error, typed))
    return _done(index, {"tell": "told", "correct": "corrected"}[kind], trial=trial)


@routes.post("/studies/{index}/trials/{trial}/fail")
async def fail(request: Request, index: int, trial: int, case: TheCase, form: Form) -> Response:
    typed = texts_of(form)
    try:
        await run_in_threadpool(case.study.fail, trial, text(typed, "reason"))
    except CBOGymError as error:
        return await _trial(request, index, trial, case, _problem(request, f"fail-{trial}", error, typed))
    return _done(index, "failed", trial=trial)
