"""The routes: FastAPI for types and documentation, verbs for the answers."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse
from fastapi.routing import APIRoute
from fastapi.staticfiles import StaticFiles
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware

import sadrec
from sadrec.data import UnknownIdError
from sadrec.serving import answers, questions, verbs
from sadrec.serving.loaded import Loaded, dumps, refusal
from sadrec.serving.metrics import CONTENT_TYPE, Metrics
from sadrec.serving.middleware import SOON, TOO_MANY, Service
from sadrec.serving.problems import NotKeptError, Unanswerable
from sadrec.serving.reload import Reloader
from sadrec.serving.settings import MOST_BODY, MOST_FEATURES, ServeSettings

logger = logging.getLogger("sadrec.serving")

EXPLORER = Path(__file__).parent / "explorer"

_PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": answers.Problem, "description": "The body is not JSON."},
    401: {"model": answers.Problem, "description": "A key is needed, and none that is known was given."},
    404: {"model": answers.Problem, "description": "A user or an item is unknown; what to do instead is said."},
    413: {"model": answers.Problem, "description": f"The body is longer than {MOST_BODY} bytes."},
    422: {"model": answers.Problem, "description": "The question is malformed, or this model has no answer to it."},
    500: {"model": answers.Problem, "description": "A fault of the service."},
    503: {
        "model": answers.Problem,
        "description": "The model is still being loaded, or too many requests arrive at once.",
    },
}
_NOT_KEPT = {"model": answers.Problem, "description": "None of the answers was kept: the disk of the log is full."}
_NOT_JSON = "the body is not JSON"
_FEATURES = (
    'give names with values, such as {"age": 30, "country": "fr"}, where a value is a number, a text of at most 256 '
    f"characters, true or false, null, or a list of texts or of numbers; or such a list alone; at most {MOST_FEATURES}"
)
_ABOUT = """Recommendations when taste does not run in a straight line. Margins are log-odds.

Every answer names the hash of the model that gave it, in `model` and in the header `X-Model`."""


def create_app(settings: ServeSettings, loaded: Loaded | None = None, reloader: Reloader | None = None) -> Service:
    """Make the application; without a loaded model, it is loaded when the server starts."""
    metrics = reloader.metrics if reloader is not None else Metrics()
    reloader = reloader or Reloader(settings, metrics, loaded)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with service.running():
            yield

    app = FastAPI(
        title="sadrec",
        version=sadrec.__version__,
        description=_ABOUT,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    _add_errors(app)
    service = Service(settings, reloader, app, ExceptionMiddleware(_recommend, app.exception_handlers))
    _add_verbs(app, service)
    _add_health(app, reloader, metrics)
    _add_rest(app)
    _add_keys_to_schema(app, settings.keys is not None)
    app.add_api_route("/docs", lambda: FileResponse(EXPLORER / "docs.html"), include_in_schema=False)
    app.mount("/", StaticFiles(directory=EXPLORER, html=True), name="explorer")
    return service


def _json(answer: Any, status: int = 200) -> Response:
    return Response(dumps(answer), status, media_type="application/json")


def _answer(loaded: Loaded, content: dict[str, Any]) -> Response:
    """Return an answer, which names the model that gave it."""
    return _json({"model": loaded.digest, **content})


def _add_verbs(app: FastAPI, service: Service) -> None:
    """Add a route for each verb. Plain functions run in threads, not in the event loop."""
    shared: Any = {"response_class": Response, "tags": ["verbs"]}
    for verb in verbs.VERBS:
        app.add_api_route(
            f"/v1/{verb.path}",
            _endpoint(verb),
            methods=[verb.method],
            name=verb.ask.__name__,
            summary=verb.summary,
            responses={200: {"model": verb.answer}, **_PROBLEMS},
            **shared,
        )

    @app.post(
        "/v1/events",
        summary="Keep people's answers for the next fit",
        responses={200: {"model": answers.EventsAnswer}, **_PROBLEMS, 507: _NOT_KEPT},
        **shared,
    )
    def events(request: Request, question: questions.Events) -> Response:
        loaded: Loaded = request.scope["loaded"]
        return _answer(loaded, {"kept": service.keep(loaded, question)})


async def _recommend(scope: Any, receive: Any, send: Any) -> None:
    """Answer ``GET /v1/recommend``: at once for a user and a number alone, otherwise in a thread.

    It is what most ask. FastAPI, which documents it, would take longer to read the question than the answer takes.
    """
    parts = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    given: dict[str, Any] = dict(parts)
    given |= {
        name: [value for key, value in parts if key == name] for name in ("items", "filter_items") if name in given
    }
    try:
        question = questions.RecommendQuery.model_validate(given)
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from None
    loaded = scope["loaded"]
    ask = partial(verbs.recommend_by_query, loaded, question)
    if not question.model_fields_set <= {"user", "N"}:
        if scope["full"]:
            raise HTTPException(503, TOO_MANY, SOON)
        content = await run_in_threadpool(ask)
    else:
        content = ask()
    await _answer(loaded, content)(scope, receive, send)


def _endpoint(verb: verbs.Verb) -> Callable[..., Response]:
    """Return the function of a route, whose signature tells FastAPI where the question is and of which type."""

    def ask(request: Request, **question: Any) -> Response:
        loaded = request.scope["loaded"]
        return _answer(loaded, verb.answered(loaded, *question.values()))

    parameters = [Parameter("request", Parameter.KEYWORD_ONLY, annotation=Request)]
    if verb.question is not None:
        name = "item" if "{item" in verb.path else "question"
        kind = Annotated[verb.question, Query()] if verb.method == "GET" and name == "question" else verb.question
        parameters.append(Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind))
    ask.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return ask


def _add_health(app: FastAPI, reloader: Reloader, metrics: Metrics) -> None:
    @app.get("/livez", response_model=answers.Health, tags=["operation"], summary="Whether the process lives")
    async def livez() -> Response:
        return _json({"status": "alive", "model": reloader.current.digest if reloader.current else None})

    responses: dict[int | str, dict[str, Any]] = {503: {"model": answers.Health}}

    @app.get(
        "/readyz", response_model=answers.Health, responses=responses, tags=["operation"], summary="Whether to ask it"
    )
    async def readyz() -> Response:
        if reloader.current is None:
            return _json({"status": "loading", "model": None}, 503)
        status = "draining" if reloader.draining else "ready"
        try:
            verbs.ask_once(reloader.current)
        except Exception:
            logger.exception("the model does not answer")
            status = "failing"
        health = {"status": status, "model": reloader.current.digest, "problem": reloader.problem}
        return _json(health, 200 if status == "ready" else 503)

    text: dict[int | str, dict[str, Any]] = {
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
        401: _PROBLEMS[401],
    }

    @app.get("/metrics", response_class=Response, responses=text, tags=["operation"], summary="Figures for Prometheus")
    async def page() -> Response:
        # Not in the threads of the verbs, which may all be busy.
        return Response(await asyncio.to_thread(metrics.page), media_type=CONTENT_TYPE)

    for path, probe in (("/livez", livez), ("/readyz", readyz)):
        app.add_api_route(path, probe, methods=["HEAD"], include_in_schema=False)


def _add_rest(app: FastAPI) -> None:
    """Add an answer for unknown paths and wrong methods, which would otherwise go to the page's files."""
    verb_paths = [
        (route.path_regex, route.methods or set())
        for route in app.routes
        if isinstance(route, APIRoute) and route.path.startswith("/v1/")
    ]

    async def rest(request: Request) -> Response:
        allowed = {method for path, methods in verb_paths if path.match(request.scope["path"]) for method in methods}
        if not allowed:
            raise HTTPException(404, "there is no such verb; /docs lists all verbs")
        ways = ", ".join(sorted(allowed))
        raise HTTPException(405, f"{request.method} is not how this verb is asked: send {ways}", {"Allow": ways})

    methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    app.add_route("/v1/{rest:path}", rest, methods, include_in_schema=False)


def _add_keys_to_schema(app: FastAPI, needed: bool) -> None:
    """Document in the schema how a key is sent, and whether one is needed."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        schema = plain()
        schema["components"]["securitySchemes"] = {
            "bearer": {"type": "http", "scheme": "bearer"},
            "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
        }
        for path, ways in schema["paths"].items():
            for way in ways.values() if needed and (path.startswith("/v1/") or path == "/metrics") else ():
                way["security"] = [{"bearer": []}, {"header": []}]
        return schema

    app.openapi = openapi  # type: ignore[method-assign]


_WORDS = {
    "Value error, ": "",
    "Field required": "must be given",
    "Input should be a valid integer, unable to parse string as an integer": "must be a whole number",
    "Input should be a valid integer": "must be a whole number",
    "Input should be a valid number, unable to parse string as a number": "must be a number",
    "Input should be a valid boolean, unable to interpret input": "must be true or false",
    "Input should be": "must be",
    " after validation": "",
}
"""Messages of pydantic, and ours."""


def _plain(message: str) -> str:
    for theirs, ours in _WORDS.items():
        message = message.replace(theirs, ours)
    return message


def _add_errors(app: FastAPI) -> None:
    """Make every error one sentence, with the model's checksum."""

    def problem(request: Request, status: int, error: str) -> Response:
        return refusal(request.scope.get("loaded"), status, error)

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return problem(request, 400, _NOT_JSON)
        if isinstance(error.body, bytes):
            return problem(request, 422, "send the body as JSON: with the header Content-Type: application/json")
        parts = [str(part) for part in first["loc"] if part not in ("body", "query", "path")]
        where = ".".join(part for part in parts if not part.startswith("constrained-"))
        message = _plain(str(first["msg"]))
        if "features" in parts[:-1] and first["type"] != "extra_forbidden":  # the kinds of a value
            where, message = ".".join(parts[: parts.index("features") + 1]), _FEATURES
            return problem(request, 422, f"{where}: {message}")
        if first["type"] == "extra_forbidden":
            message = "there is no such name here; /docs lists the names of every question"
        elif any(part.startswith("constrained-") for part in parts):  # the kinds of an id
            message = "an id is a whole number, a number, or text of at most 256 characters"
        elif first["loc"] == ("body",) and first["type"] == "model_attributes_type":
            message = 'a question is a JSON object: {"user": 7, ...}'
        return problem(request, 422, f"{where}: {message}" if where else message)

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        sentence = {400: _NOT_JSON}.get(error.status_code, str(error.detail))
        if sentence == "Not Found":  # of the page's files
            sentence = "there is nothing here: / is the explorer, and /docs lists what can be asked"
        response = problem(request, error.status_code, sentence)
        response.headers.update(error.headers or {})
        return response

    app.add_exception_handler(RequestValidationError, invalid)
    for kind, status in ((UnknownIdError, 404), (Unanswerable, 422), (NotKeptError, 507)):

        async def refused(request: Request, error: Exception, status: int = status) -> Response:
            return problem(request, status, str(error))

        app.add_exception_handler(kind, refused)
    app.add_exception_handler(HTTPException, http)
