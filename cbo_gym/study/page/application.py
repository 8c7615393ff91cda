"""Routes of the page of studies."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

import polars as pl
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.staticfiles import StaticFiles

from cbo_gym._util.files import csv_of
from cbo_gym._util.yaml import Lines, parse_yaml
from cbo_gym.agent_registry.finding import known_agents
from cbo_gym.errors import ArgumentError, CBOGymError, OperationError
from cbo_gym.study.description import Description, modes
from cbo_gym.study.expectation import Expectation
from cbo_gym.study.forecast import Forecast
from cbo_gym.study.page import agent_pool
from cbo_gym.study.page.access import COOKIE, AccessPolicy, equal_in_constant_time
from cbo_gym.study.page.form_input import (
    CONTEXT,
    DO,
    FIXED,
    FormInput,
    content_of,
    first_string,
    names_in,
    read_description,
    read_numbers,
    read_trial_count,
    strings_of,
)
from cbo_gym.study.page.guard import MAX_BYTES, Guard
from cbo_gym.study.page.service import ServedStudy, StudyService
from cbo_gym.study.page.templates import page, plain_page
from cbo_gym.study.page.views import FormError, card_of, counts, expectation_content, outcome_of, study_content
from cbo_gym.study.report import style
from cbo_gym.study.study import Study

STATIC = Path(__file__).parent / "static"
# Number of rows of settable variables in an empty form.
FIRST_ROWS = 4
# Largest number of fields of a form.
MAX_FIELDS = 3000
TrialAction = Literal["tell", "correct", "close", "fail", "reject"]
# Action on a trial -> notice that the page shows.
NOTICES = {"tell": "recorded", "correct": "corrected", "close": "closed", "fail": "failed", "reject": "rejected"}
# A number in the address of a notice.
NUMBER = re.compile("[0-9]{1,9}")
routes = APIRouter(default_response_class=HTMLResponse)


def make_app(service: StudyService, access: AccessPolicy) -> FastAPI:
    """Create the application that serves the page of a database's studies."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, title="cbo-gym study")
    app.state.service, app.state.access = service, access
    app.include_router(routes)
    app.mount("/static", StaticFiles(directory=STATIC))
    for error in (StarletteHTTPException, RequestValidationError, CBOGymError):
        app.add_exception_handler(error, _handle_error)
    app.add_middleware(Guard, access=access)
    return app


# Errors ------------------------------------------------------------------------------------------------------


async def _handle_error(request: Request, error: Exception) -> Response:
    if isinstance(error, RequestValidationError):
        return plain_page(404, "No such page", "Studies and trials have whole numbers.")
    if isinstance(error, StarletteHTTPException):
        title = "No such page" if error.status_code == 404 else "Refused"
        return plain_page(error.status_code, title, str(error.detail))
    return plain_page(_status(error), "This does not work", request.app.state.service.error_message(error))


def _status(error: Exception) -> int:
    """Return the status of the answer: 503 if the database cannot do it now, 422 if the input is wrong."""
    return 503 if isinstance(error, OperationError) else 422


# Dependencies of routes --------------------------------------------------------------------------------------------


def _service(request: Request) -> StudyService:
    return request.app.state.service


TheService = Annotated[StudyService, Depends(_service)]


async def _names(service: TheService) -> list[str]:
    return await run_in_threadpool(service.names)


Names = Annotated[list[str], Depends(_names)]


async def _served_study(index: int, service: TheService, names: Names) -> ServedStudy:
    if not 1 <= index <= len(names):
        raise HTTPException(404, f"There is no study {index}; {service.database_name} has {len(names)}.")
    return await run_in_threadpool(service.study, names[index - 1])


async def _form(request: Request) -> AsyncIterator[FormData]:
    """Yield the fields of a form, if it has the token of this server."""
    async with request.form(max_files=1, max_fields=MAX_FIELDS, max_part_size=MAX_BYTES) as form:
        token = form.get("forgery")
        if not isinstance(token, str) or not equal_in_constant_time(token, request.app.state.access.forgery):
            raise HTTPException(
                403, "The form is from another run of the server; go back, reload the page and send it again."
            )
        yield form


TheStudy = Annotated[ServedStudy, Depends(_served_study)]
Form = Annotated[FormData, Depends(_form)]


def _page(request: Request, template: str, status: int = 200, **content: Any) -> Response:
    database, forgery = request.app.state.service.database_name, request.app.state.access.forgery
    return page(template, status, database=database, forgery=forgery, **content)


def _redirect(index: int, action: str, **numbers: int) -> Response:
    """Redirect to the page of the study with a notice of the action, which a reload does not repeat."""
    return RedirectResponse(f"/studies/{index}?{urlencode({'done': action, **numbers})}", 303)


# Logging in --------------------------------------------------------------------------------------------------


@routes.get("/login")
async def show_login() -> Response:
    return page("login", wrong=False)


@routes.post("/login")
async def login(request: Request) -> Response:
    """Log in. This form has no forgery token, because visitors who are not logged in must not see it."""
    access: AccessPolicy = request.app.state.access
    async with request.form(max_files=0, max_fields=1) as form:
        token = first_string(strings_of(form), "token")
    if access.token is not None and not equal_in_constant_time(token, access.token):
        return page("login", 403, wrong=True)
    answer = RedirectResponse("/", 303)
    answer.set_cookie(COOKIE, access.session, httponly=True, samesite="strict")
    return answer


# Studies -----------------------------------------------------------------------------------------------------


@routes.get("/")
async def show_studies(request: Request, service: TheService, names: Names) -> Response:
    """List the studies; a single study is shown at once."""
    if len(names) == 1:
        return RedirectResponse("/studies/1", 303)
    if not names:
        return RedirectResponse("/new", 303)
    return _page(request, "studies", studies=await run_in_threadpool(_summarize, service, names))


def _summarize(service: StudyService, names: list[str]) -> list[dict[str, Any]]:
    summaries: list[dict[str, Any]] = []
    for index, name in enumerate(names, start=1):
        try:
            served = service.study(name)
            summaries.append(
                {"index": index, "name": name, "description": served.description, "counts": counts(served.study.trials)}
            )
        except CBOGymError as error:
            summaries.append({"index": index, "name": name, "error": service.error_message(error)})
    return summaries


@routes.get("/new")
async def show_new(request: Request, names: Names) -> Response:
    return _new(request, names, None)


def _new(request: Request, names: list[str], problem: FormError | None, rows: int = FIRST_ROWS) -> Response:
    typed = problem.typed if problem else {"mode": [Description.model_fields["mode"].default]}
    options = [(mode, f"{trial_description} ({mode})") for mode, trial_description in modes().items()]
    content = {"problem": problem, "agents": known_agents(), "rows": rows, "first": not names, "modes": options}
    return _page(request, "new", problem.status if problem else 200, typed=typed, **content)


def _problem(request: Request, form: str, error: Exception, typed: FormInput) -> FormError:
    return FormError(form, request.app.state.service.error_message(error), typed, _status(error))


@routes.post("/new")
async def create(request: Request, form: Form, service: TheService, names: Names) -> Response:
    typed = strings_of(form)
    rows = max(FIRST_ROWS, len(typed.get("setting", [])))
    if "more" in typed:
        return _new(request, names, FormError("", "", typed, 200), 2 * rows)
    try:
        name = await service.create(partial(read_description, typed))
    except CBOGymError as error:
        return _new(request, names, _problem(request, "create", error, typed), rows)
    return await _redirect_to_new(service, name)


@routes.post("/new/yaml")
async def create_from_yaml(request: Request, form: Form, service: TheService, names: Names) -> Response:
    typed, content = strings_of(form), await content_of(form, "file")
    try:
        name = await service.create(partial(_parse, content, first_string(typed, "yaml")))
    except CBOGymError as error:
        return _new(request, names, _problem(request, "yaml", error, typed))
    return await _redirect_to_new(service, name)


def _parse(uploaded: bytes, pasted: str) -> tuple[Any, Lines]:
    return parse_yaml(_choose_input(uploaded, pasted, "YAML"))


def _choose_input(uploaded: bytes, pasted: str, format_name: str) -> bytes:
    if bool(uploaded) == bool(pasted):
        received = "both" if uploaded else "neither"
        raise ArgumentError(f"choose a file, or paste {format_name}; {received} was given")
    # Half of a surrogate pair is encoded too; the reader of the content refuses it.
    return uploaded or pasted.encode(errors="surrogatepass")


async def _redirect_to_new(service: StudyService, name: str) -> Response:
    names = await run_in_threadpool(service.names)
    return _redirect(names.index(name) + 1, "created")


# One study ---------------------------------------------------------------------------------------------------


@routes.get("/studies/{index}")
async def show_study(request: Request, index: int, served: TheStudy) -> Response:
    return await _study(request, index, served)


async def _study(
    request: Request,
    index: int,
    served: ServedStudy,
    problem: FormError | None = None,
    expected: Mapping[str, Any] | None = None,
) -> Response:
    content = await run_in_threadpool(study_content, served, problem)
    content |= {"index": index, "report": await served.report(), "expected": expected, "notice": _notice(request)}
    return _page(request, "study", problem.status if problem else 200, **content)


def _notice(request: Request) -> dict[str, Any]:
    """Return the notice in the address about the last action: its name and whole numbers."""
    query = request.query_params
    whole_numbers = {
        name: int(query[name]) for name in ("trial", "count", "repeated") if NUMBER.fullmatch(query.get(name, ""))
    }
    return {"done": query.get("done", ""), "trial": 0, "count": 1, "repeated": 0, **whole_numbers}


@routes.get("/studies/{index}/report")
async def show_report(request: Request, index: int, served: TheStudy) -> Response:
    """Show the report alone, however long it takes; the script of the page loads it too."""
    sections = await served.report(None)
    return _page(request, "report", index=index, description=served.description, report=sections)


@routes.get("/report.css")
async def report_style() -> Response:
    return Response(style(), media_type="text/css")


@routes.get("/studies/{index}/state")
async def state(served: TheStudy) -> Response:
    """Return the number of the last event, by which an open page notices that it is out of date."""
    return JSONResponse({"event": await run_in_threadpool(lambda: served.study.events)})


@routes.get("/studies/{index}/trials.csv")
async def export_trials(index: int, served: TheStudy) -> Response:
    return _csv(await run_in_threadpool(served.study.to_frame), f"study-{index}-trials.csv")


@routes.get("/studies/{index}/data.csv")
async def export_data(index: int, served: TheStudy) -> Response:
    """Export all rounds, as another study can import them."""
    return _csv(await run_in_threadpool(served.study.data), f"study-{index}-data.csv")


def _csv(frame: pl.DataFrame, filename: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{filename}"'}
    return Response(csv_of(frame), media_type="text/csv; charset=utf-8", headers=headers)


@routes.get("/studies/{index}/what-if")
async def what_if(request: Request, index: int, served: TheStudy) -> Response:
    """Show the agent's expectation. Nothing is recorded, so a user can keep the link."""
    typed = {name: [string.strip() for string in request.query_params.getlist(name)] for name in request.query_params}
    try:
        expected = await served.call(agent_pool.what_if, read_numbers(typed, DO), read_numbers(typed, CONTEXT) or None)
        values, intervals, assumed, forecast = expected
        expectation = Expectation(values, intervals, assumed, Forecast(*forecast))
    except CBOGymError as error:
        return await _study(request, index, served, _problem(request, "what-if", error, typed))
    return await _study(
        request, index, served, FormError("what-if", "", typed, 200), expectation_content(served, expectation)
    )


@routes.post("/studies/{index}/ask")
async def ask(request: Request, index: int, served: TheStudy, form: Form) -> Response:
    typed = strings_of(form)
    try:
        count = read_trial_count(first_string(typed, "count") or "1")
        context, shared = read_numbers(typed, CONTEXT) or None, names_in(first_string(typed, "shared"))
        trials = await served.call(agent_pool.ask, count, context, read_numbers(typed, FIXED), shared)
    except CBOGymError as error:
        return await _study(request, index, served, _problem(request, "ask", error, typed))
    return _redirect(index, "asked", trial=trials[0], count=len(trials))


@routes.post("/studies/{index}/register")
async def register(request: Request, index: int, served: TheStudy, form: Form) -> Response:
    typed = strings_of(form)
    try:
        context = read_numbers(typed, CONTEXT) or None
        trial = await run_in_threadpool(served.study.register, read_numbers(typed, DO), context=context)
    except CBOGymError as error:
        return await _study(request, index, served, _problem(request, "register", error, typed))
    return _redirect(index, "registered", trial=trial.number)


@routes.post("/studies/{index}/import")
async def import_data(request: Request, index: int, served: TheStudy, form: Form) -> Response:
    typed, content = strings_of(form), await content_of(form, "file")
    # White space at the ends of pasted CSV may be empty cells.
    pasted = str(form.get("csv") or "")
    try:
        table = _choose_input(content, pasted if pasted.strip() else "", "CSV")
        ignored, campaign = first_string(typed, "ignore").splitlines(), first_string(typed, "campaign") or None
        differs = names_in(first_string(typed, "differs"))
        count, repeated = await served.call(agent_pool.add_data, table, ignored, campaign, differs)
    except CBOGymError as error:
        return await _study(request, index, served, _problem(request, "import", error, typed))
    return _redirect(index, "imported", count=count, repeated=repeated)


# One trial ---------------------------------------------------------------------------------------------------


@routes.get("/studies/{index}/trials/{trial}")
async def show_trial(request: Request, index: int, trial: int, served: TheStudy) -> Response:
    return await _trial(request, index, trial, served)


async def _trial(
    request: Request, index: int, trial: int, served: ServedStudy, problem: FormError | None = None
) -> Response:
    entries = await run_in_threadpool(served.entries)
    if trial not in entries:
        message = problem.message if problem else f"there is no trial {trial}; there are {len(entries)}"
        return plain_page(problem.status if problem else 404, "No such trial", message)
    # The forms of the trial; the last one is shown if it has the problem.
    actions = {"pending": ["tell"], "partial": ["tell", "correct"]}
    forms = [f"{action}-{trial}" for action in actions.get(entries[trial].status, ["correct"])]
    form = forms[-1] if problem is not None and problem.form == forms[-1] else forms[0]
    # The trial may have ended meanwhile, so that it has another form.
    if problem is not None and problem.form in (f"tell-{trial}", f"correct-{trial}"):
        problem = replace(problem, form=form)
    card = card_of(served, entries[trial], problem, form)
    content = {"index": index, "description": served.description, "card": card, "problem": problem}
    return _page(request, "trial", problem.status if problem else 200, **content)


@routes.post("/studies/{index}/trials/{trial}/{action}")
async def end_trial(
    request: Request, index: int, trial: int, action: TrialAction, served: TheStudy, form: Form
) -> Response:
    """Call the method of the study with the name of the action: record an outcome, or end the trial without one."""
    typed = strings_of(form)
    arguments: tuple[Any, ...] = (first_string(typed, "reason"),)
    keywords: dict[str, Any] = {}
    if action in ("tell", "correct"):
        values, keywords = await run_in_threadpool(outcome_of, served, trial, typed)
        arguments = (values,)
    if action == "tell":
        keywords["final"] = "partial" not in form
    try:
        await run_in_threadpool(getattr(Study, action), served.study, trial, *arguments, **keywords)
    except CBOGymError as error:
        return await _trial(request, index, trial, served, _problem(request, f"{action}-{trial}", error, typed))
    done = "part" if action == "tell" and "partial" in typed else NOTICES[action]
    return _redirect(index, done, trial=trial)
