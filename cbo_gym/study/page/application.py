"""The routes of the page."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping
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
from cbo_gym.study.page.access import COOKIE, AccessPolicy, same
from cbo_gym.study.page.guard import MOST_BYTES, Guard
from cbo_gym.study.page.looks import page, plain_page
from cbo_gym.study.page.service import Case, StudyService
from cbo_gym.study.page.typed import CONTEXT, DO, Typed, asked_number, content_of, description, numbers, text, texts_of
from cbo_gym.study.page.views import Problem, card_of, counts, expected_context, study_context, told
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
        access: who is let in.
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
    """Of an answer that shows this error: what was sent is wrong, or the database cannot do it now."""
    return 503 if isinstance(error, OperationError) else 422


# What routes take --------------------------------------------------------------------------------------------


def _service(request: Request) -> StudyService:
    return request.app.state.service


TheService = Annotated[StudyService, Depends(_service)]


async def _names(service: TheService) -> list[str]:
    return await run_in_threadpool(service.names)


Names = Annotated[list[str], Depends(_names)]


async def _case(place: int, service: TheService, names: Names) -> Case:
    if not 1 <= place <= len(names):
        raise HTTPException(404, f"There is no study {place}; {service.called} has {len(names)}.")
    return await run_in_threadpool(service.case, names[place - 1])


async def _form(request: Request) -> AsyncIterator[FormData]:
    """The fields of a form that this server has sent."""
    async with request.form(max_files=1, max_fields=MAX_FIELDS, max_part_size=MOST_BYTES) as form:
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


def _done(place: int, what: str, **more: int) -> Response:
    """To the page of the study, which says what was done; reloading it does not do it again."""
    return RedirectResponse(f"/studies/{place}?{urlencode({'done': what, **more})}", 303)


# Logging in --------------------------------------------------------------------------------------------------


@routes.get("/login")
async def show_login() -> Response:
    return page("login", wrong=False)


@routes.post("/login")
async def login(request: Request) -> Response:
    """The one form without a forgery token, for it would tell the token to those who are not logged in."""
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
    for place, name in enumerate(names, start=1):
        try:
            case = service.case(name)
            found.append({"place": place, "name": name, "about": case.about, "counts": counts(case.seen())})
        except CBOGymError as error:
            found.append({"place": place, "name": name, "error": service.in_words(error)})
    return found


@routes.get("/new")
async def show_new(request: Request, names: Names) -> Response:
    return _new(request, names, None)


def _new(
    request: Request, names: list[str], problem: Problem | None, status: int = 200, rows: int = FIRST_ROWS
) -> Response:
    context = {"problem": problem, "agents": known_agents(), "rows": rows, "first": not names}
    return _page(request, "new", status, typed=problem.typed if problem else {}, **context)


@routes.post("/new")
async def create(request: Request, form: Form, service: TheService, names: Names) -> Response:
    typed = texts_of(form)
    rows = max(FIRST_ROWS, len(typed.get("thing", [])))
    if "more" in typed:
        return _new(request, names, Problem("", "", typed), rows=2 * rows)
    try:
        name = await service.create(partial(_fields_of, typed))
    except CBOGymError as error:
        return _new(request, names, Problem("create", service.in_words(error), typed), _status(error), rows)
    return await _created(service, name)


@routes.post("/new/yaml")
async def create_from_yaml(request: Request, form: Form, service: TheService, names: Names) -> Response:
    typed, content = texts_of(form), await content_of(form, "file")
    try:
        name = await service.create(partial(_parsed, content, text(typed, "yaml")))
    except CBOGymError as error:
        return _new(request, names, Problem("yaml", service.in_words(error), typed), _status(error))
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


@routes.get("/studies/{place}")
async def show_study(request: Request, place: int, case: TheCase) -> Response:
    return await _study(request, place, case)


async def _study(
    request: Request,
    place: int,
    case: Case,
    problem: Problem | None = None,
    status: int = 200,
    expected: Mapping[str, Any] | None = None,
) -> Response:
    seen = await run_in_threadpool(case.seen)
    context = study_context(case, seen, problem)
    context |= {"place": place, "report": await case.report(), "expected": expected, "said": _said(request)}
    return _page(request, "study", status, **context)


def _said(request: Request) -> dict[str, Any]:
    """The message in the address about what was just done: one of a few, and whole numbers."""
    given = request.query_params
    numbers_given = {name: int(given[name]) for name in ("trial", "count") if NUMBER.fullmatch(given.get(name, ""))}
    return {"done": given.get("done", ""), "trial": 0, "count": 1, **numbers_given}


@routes.get("/studies/{place}/report")
async def show_report(request: Request, place: int, case: TheCase) -> Response:
    """The report alone, however long it takes: for browsers without a script, and for the script."""
    parts = await case.report(None)
    return _page(request, "report", place=place, about=case.about, report=parts)


@routes.get("/report.css")
async def report_style() -> Response:
    return Response(style(), media_type="text/css")


@routes.get("/studies/{place}/state")
async def state(case: TheCase) -> Response:
    """The number of the last event, from which a page that is open sees that it is out of date."""
    return JSONResponse({"event": await run_in_threadpool(getattr, case.study, "events")})


@routes.get("/studies/{place}/trials.csv")
async def export_trials(place: int, case: TheCase) -> Response:
    return _csv(await run_in_threadpool(case.study.to_frame), f"study-{place}-trials.csv")


@routes.get("/studies/{place}/data.csv")
async def export_data(place: int, case: TheCase) -> Response:
    """All rounds, as another study can import them."""
    return _csv(await run_in_threadpool(case.study.data), f"study-{place}-data.csv")


def _csv(frame: pl.DataFrame, called: str) -> Response:
    named = {"Content-Disposition": f'attachment; filename="{called}"'}
    return Response(csv_of(frame), media_type="text/csv; charset=utf-8", headers=named)


@routes.get("/studies/{place}/what-if")
async def what_if(request: Request, place: int, case: TheCase, service: TheService) -> Response:
    """The agent's expectation; nothing is recorded, so it is a link that can be kept."""
    typed = {name: [one.strip() for one in request.query_params.getlist(name)] for name in request.query_params}
    problem = Problem("what-if", "", typed)
    try:
        context = numbers(typed, CONTEXT) or None
        found = await case.what_if(numbers(typed, DO), context)
    except CBOGymError as error:
        return await _study(request, place, case, Problem("what-if", service.in_words(error), typed), _status(error))
    return await _study(request, place, case, problem, expected=expected_context(case, found))


@routes.post("/studies/{place}/ask")
async def ask(request: Request, place: int, case: TheCase, form: Form, service: TheService) -> Response:
    typed = texts_of(form)
    context = numbers(typed, CONTEXT) or None
    try:
        trials = await case.ask(asked_number(text(typed, "count") or "1"), context)
    except CBOGymError as error:
        return await _study(request, place, case, Problem("ask", service.in_words(error), typed), _status(error))
    return _done(place, "asked", trial=trials[0], count=len(trials))


@routes.post("/studies/{place}/import")
async def import_data(request: Request, place: int, case: TheCase, form: Form, service: TheService) -> Response:
    typed, content = texts_of(form), await content_of(form, "file")
    # White space at both ends of what is pasted may be empty cells.
    pasted = str(form.get("csv") or "")
    try:
        table = _one_of(content, pasted if pasted.strip() else "", "CSV")
        count = await case.add_data(table, text(typed, "ignore").splitlines())
    except CBOGymError as error:
        return await _study(request, place, case, Problem("import", service.in_words(error), typed), _status(error))
    return _done(place, "imported", count=count)


# One trial ---------------------------------------------------------------------------------------------------


@routes.get("/studies/{place}/trials/{trial}")
async def show_trial(request: Request, place: int, trial: int, case: TheCase) -> Response:
    return await _trial(request, place, trial, case)


async def _trial(
    request: Request, place: int, trial: int, case: Case, problem: Problem | None = None, status: int = 200
) -> Response:
    seen = await run_in_threadpool(case.seen)
    if trial not in seen.entries:
        words = problem.words if problem else f"there is no trial {trial}; there are {len(seen.entries)}"
        return plain_page(status if problem else 404, "No such trial", words)
    kind = "correct" if seen.entries[trial].status == "told" else "tell"
    if problem is not None and problem.form != f"fail-{trial}":  # the trial may have ended meanwhile
        problem = Problem(f"{kind}-{trial}", problem.words, problem.typed)
    card = card_of(case, seen, trial, problem, f"{kind}-{trial}")
    context = {"place": place, "about": case.about, "card": card, "problem": problem}
    return _page(request, "trial", status, **context)


@routes.post("/studies/{place}/trials/{trial}/tell")
async def tell(request: Request, place: int, trial: int, case: TheCase, form: Form) -> Response:
    return await _outcome(request, place, trial, case, form, Study.tell)


@routes.post("/studies/{place}/trials/{trial}/correct")
async def correct(request: Request, place: int, trial: int, case: TheCase, form: Form) -> Response:
    return await _outcome(request, place, trial, case, form, Study.correct)


async def _outcome(
    request: Request, place: int, trial: int, case: Case, form: FormData, call: Callable[..., None]
) -> Response:
    typed, seen = texts_of(form), await run_in_threadpool(case.seen)
    values, did = told(case, seen, trial, typed)
    kind = call.__name__
    try:
        await run_in_threadpool(call, case.study, trial, values, did=did)
    except CBOGymError as error:
        problem = Problem(f"{kind}-{trial}", request.app.state.service.in_words(error), typed)
        return await _trial(request, place, trial, case, problem, _status(error))
    return _done(place, {"tell": "told", "correct": "corrected"}[kind], trial=trial)


@routes.post("/studies/{place}/trials/{trial}/fail")
async def fail(request: Request, place: int, trial: int, case: TheCase, form: Form, service: TheService) -> Response:
    typed = texts_of(form)
    try:
        await run_in_threadpool(case.study.fail, trial, text(typed, "reason"))
    except CBOGymError as error:
        problem = Problem(f"fail-{trial}", service.in_words(error), typed)
        return await _trial(request, place, trial, case, problem, _status(error))
    return _done(place, "failed", trial=trial)
