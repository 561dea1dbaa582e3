"""The routes: FastAPI for types and documents, verbs for the answers."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response
from fastapi import Path as InPath
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse
from fastapi.routing import APIRoute
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

import sadrec
from sadrec.data.ids import UnknownIdError
from sadrec.serving import answers, questions, verbs
from sadrec.serving.metrics import CONTENT_TYPE, Metrics
from sadrec.serving.problems import NotKeptError, Unanswerable
from sadrec.serving.served import Served, dumps
from sadrec.serving.service import Service
from sadrec.serving.settings import MOST_BODY, MOST_FEATURES, ServeSettings
from sadrec.serving.store import Store

logger = logging.getLogger("sadrec.serving")

EXPLORER = Path(__file__).parent / "explorer"

_PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": answers.Problem, "description": "The body is not JSON."},
    401: {"model": answers.Problem, "description": "A key is needed, and none that is known was given."},
    404: {"model": answers.Problem, "description": "A user or an item is unknown; what to do instead is said."},
    413: {"model": answers.Problem, "description": f"The body is longer than {MOST_BODY} bytes."},
    422: {"model": answers.Problem, "description": "The question is malformed, or this model has no answer to it."},
    500: {"model": answers.Problem, "description": "A fault of the service."},
    503: {"model": answers.Problem, "description": "The model is still being loaded, or too much is asked at once."},
}
_RARE: dict[int | str, dict[str, Any]] = {
    507: {"model": answers.Problem, "description": "None of the answers was kept: the disk of the log is full."}
}
_NOT_JSON = "the body is not JSON"
_FEATURES = (
    'give names with values, such as {"age": 30, "country": "fr"}, where a value is a number, a text of at most 256 '
    f"characters, true or false, null, or a list of texts or of numbers; or such a list alone; at most {MOST_FEATURES}"
)
_ABOUT = """Recommendations when taste does not run in a straight line. Margins are log-odds.

Every answer names the hash of the model that gave it, in `model` and in the header `X-Model`."""


def create_app(settings: ServeSettings, served: Served | None = None, store: Store | None = None) -> Service:
    """Make the application; a model that is loaded already can be given, else it is loaded when the server starts."""
    metrics = store.metrics if store is not None else Metrics()
    store = store or Store(settings, metrics, served)
    service = Service(settings, store)

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
    _add_verbs(app, service)
    _add_health(app, store, metrics)
    _add_rest(app)
    _add_keys_to_schema(app, service.keys is not None)
    _add_errors(app)
    app.add_api_route("/docs", lambda: FileResponse(EXPLORER / "docs.html"), include_in_schema=False)
    app.mount("/", StaticFiles(directory=EXPLORER, html=True), name="explorer")
    service.app = app
    if settings.cors:
        from starlette.middleware.cors import CORSMiddleware

        service.entry = CORSMiddleware(  # around keys and the direct path: a browser asks beforehand, without a key
            service.answer,
            allow_origins=list(settings.cors),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "X-API-Key", "Content-Type"],
            expose_headers=["X-Model"],
        )
    return service


def answered(request: Request) -> Served:
    """Return what this request is answered from: one model from beginning to end."""
    served: Served = request.scope["served"]
    return served


def _json(answer: Any, status: int = 200) -> Response:
    return Response(dumps(answer), status, media_type="application/json")


def _add_verbs(app: FastAPI, service: Service) -> None:
    """Add a route for each verb. Plain functions run in threads, beside the loop that serves everybody."""

    def route(add: Any, path: str, answer: type, summary: str, *more: int | str) -> Callable[[Any], Any]:
        rare = {status: _RARE[status] for status in more}
        responses: dict[int | str, dict[str, Any]] = {200: {"model": answer}, **_PROBLEMS, **rare}
        added: Callable[[Any], Any] = add(
            f"/v1/{path}", response_class=Response, responses=responses, summary=summary, tags=["verbs"]
        )
        return added

    get, post = partial(route, app.get), partial(route, app.post)

    @get("describe", answers.DescribeAnswer, "What is served")
    def describe(request: Request) -> Response:
        return _json(verbs.describe(answered(request)))

    @get("recommend", answers.RecommendAnswer, "What to show a known user")
    def recommend(request: Request, asked: Annotated[questions.RecommendQuery, Query()]) -> Response:
        full = questions.Recommend.model_validate({**asked.model_dump(), "items": asked.items or None})
        return _json(verbs.recommend(answered(request), full))

    @post("recommend", answers.RecommendAnswer, "What to show a user, or a visitor by likes, comparisons or features")
    def recommend_to(request: Request, asked: questions.Recommend) -> Response:
        return _json(verbs.recommend(answered(request), asked))

    @post("groups", answers.GroupsAnswer, "Slates: items that form a cycle are shown together")
    def groups(request: Request, asked: questions.Groups) -> Response:
        return _json(verbs.groups(answered(request), asked))

    @post("prefer", answers.PreferAnswer, "Which of two items is preferred, and how surely")
    def prefer(request: Request, asked: questions.Prefer) -> Response:
        return _json(verbs.prefer(answered(request), asked))

    @post("margins", answers.MarginsAnswer, "All of some items against all of some rivals")
    def margins(request: Request, asked: questions.Margins) -> Response:
        return _json(verbs.margins(answered(request), asked))

    @post("rank", answers.RankAnswer, "An order of given items")
    def rank(request: Request, asked: questions.Rank) -> Response:
        return _json(verbs.rank(answered(request), asked))

    @post("cycles", answers.CyclesAnswer, "Where taste runs in a cycle, and which factors carry it")
    def cycles(request: Request, asked: questions.Cycles) -> Response:
        return _json(verbs.cycles(answered(request), asked))

    @post("explain", answers.ExplainAnswer, "Why an item rather than a rival")
    def explain(request: Request, asked: questions.Explain) -> Response:
        return _json(verbs.explain(answered(request), asked))

    @get("similar", answers.SimilarAnswer, "What is alike to an item, or who to a user")
    def similar(request: Request, asked: Annotated[questions.Similar, Query()]) -> Response:
        return _json(verbs.similar(answered(request), asked))

    @post("question", answers.AskAnswer, "What to ask a person next")
    def question(request: Request, asked: questions.Ask) -> Response:
        return _json(verbs.ask(answered(request), asked))

    @post("visitor", answers.VisitorAnswer, "All about a visitor: list, next question, contradictions, cycle")
    def visitor(request: Request, asked: questions.Visitor) -> Response:
        return _json(verbs.visitor(answered(request), asked))

    @post("slate", answers.SlateAnswer, "Who wins among a few items, and whose presence changes that")
    def slate(request: Request, asked: questions.Slate) -> Response:
        return _json(verbs.slate(answered(request), asked))

    @get("arena", answers.ArenaAnswer, "Who is best: leaderboard, match-ups, cycles, what to ask next")
    def arena(request: Request) -> Response:
        return _json(verbs.arena(answered(request)))

    @get("nemesis", answers.NemesisAnswer, "What beats an item, for what share of the users")
    def nemesis(request: Request, asked: Annotated[questions.NemesisQuery, Query()]) -> Response:
        return _json(verbs.nemesis(answered(request), asked))

    @post("worth", answers.WorthAnswer, "The model beside its twin with T = 1: is learning T worth it?")
    def worth(request: Request, asked: questions.Worth) -> Response:
        return _json(verbs.worth(answered(request), asked))

    @get("items", answers.SearchAnswer, "Items by title or id")
    def items(request: Request, asked: Annotated[questions.SearchQuery, Query()]) -> Response:
        return _json(verbs.search(answered(request), asked))

    @get("items/{item:path}", answers.ItemAnswer, "One item")
    def item(request: Request, item: Annotated[str, InPath(max_length=256)]) -> Response:
        return _json(verbs.item(answered(request), item))

    @get("users", answers.UsersAnswer, "Some users")
    def users(request: Request, asked: Annotated[questions.UsersQuery, Query()]) -> Response:
        return _json(verbs.users(answered(request), asked))

    @get("popular", answers.RecommendAnswer, "What is popular")
    def popular(request: Request, asked: Annotated[questions.PopularQuery, Query()]) -> Response:
        return _json(verbs.popular(answered(request), asked))

    @post("events", answers.EventsAnswer, "Keep people's answers for the next fit", 507)
    def events(request: Request, asked: questions.Events) -> Response:
        served = answered(request)
        return _json({"model": served.digest, "kept": service.keep(served, asked)})


def _add_health(app: FastAPI, store: Store, metrics: Metrics) -> None:
    @app.get("/livez", response_model=answers.Health, tags=["operation"], summary="Whether the process lives")
    async def livez() -> Response:
        return _json({"status": "alive", "model": store.current.digest if store.current else None})

    responses: dict[int | str, dict[str, Any]] = {503: {"model": answers.Health}}

    @app.get(
        "/readyz", response_model=answers.Health, responses=responses, tags=["operation"], summary="Whether to ask it"
    )
    async def readyz() -> Response:
        if store.current is None:
            return _json({"status": "loading", "model": None}, 503)
        status = "draining" if store.draining else "ready"
        try:
            verbs.ask_once(store.current)
        except Exception:
            logger.exception("the model does not answer")
            status = "failing"
        told = {"status": status, "model": store.current.digest, "problem": store.problem}
        return _json(told, 200 if status == "ready" else 503)

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
    """Answer what is no verb, or not asked for in the way of its verb; else the page would, which has no such file."""
    known = [
        (route.path_regex, route.methods or set())
        for route in app.routes
        if isinstance(route, APIRoute) and route.path.startswith("/v1/")
    ]

    async def rest(request: Request) -> Response:
        allowed = {method for path, methods in known if path.match(request.scope["path"]) for method in methods}
        if not allowed:
            raise HTTPException(404, "there is no such verb; /docs lists those that there are")
        ways = ", ".join(sorted(allowed))
        raise HTTPException(405, f"{request.method} is not how this verb is asked: send {ways}", {"Allow": ways})

    methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    app.add_route("/v1/{rest:path}", rest, methods, include_in_schema=False)


def _add_keys_to_schema(app: FastAPI, needed: bool) -> None:
    """Let the interface say how a key is sent, and whether one is needed."""
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
"""What pydantic says, and how it is said here."""


def _plain(message: str) -> str:
    for theirs, ours in _WORDS.items():
        message = message.replace(theirs, ours)
    return message


def _add_errors(app: FastAPI) -> None:
    """Let every error be one sentence, with the model's hash."""

    def problem(request: Request, status: int, error: str) -> Response:
        served = request.scope.get("served")
        return _json({"error": error, "model": served.digest if served else None}, status)

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
            message = "there is no such name here; /docs lists those that there are"
        elif any(part.startswith("constrained-") for part in parts):  # the kinds of an id
            message = "an id is a whole number, a number, or text of at most 256 characters"
        elif first["loc"] == ("body",) and first["type"] == "model_attributes_type":
            message = 'a question is a JSON object: {"user": 7, ...}'
        return problem(request, 422, f"{where}: {message}" if where else message)

    async def unknown(request: Request, error: Exception) -> Response:
        return problem(request, 404, str(error))

    async def unanswerable(request: Request, error: Exception) -> Response:
        return problem(request, 422, str(error))

    async def not_kept(request: Request, error: Exception) -> Response:
        return problem(request, 507, str(error))

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        told = {400: _NOT_JSON}.get(error.status_code, str(error.detail))
        if told == "Not Found":  # of the page's files
            told = "there is nothing here: / is the explorer, and /docs lists what can be asked"
        response = problem(request, error.status_code, told)
        response.headers.update(error.headers or {})
        return response

    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(UnknownIdError, unknown)
    app.add_exception_handler(Unanswerable, unanswerable)
    app.add_exception_handler(NotKeptError, not_kept)
    app.add_exception_handler(HTTPException, http)
