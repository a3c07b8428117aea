"""The web application: its routes, and what becomes of errors."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from anyio import to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response
from starlette.exceptions import HTTPException

from vicinal._typing import Document
from vicinal.serve.limits import Gate
from vicinal.serve.messages import (
    Changed,
    ErrorMessage,
    Health,
    NeighborQuestion,
    Question,
    Reply,
    RowNames,
    SentRows,
)
from vicinal.serve.model_source import LoadedModel, ModelSource
from vicinal.serve.served_model import Answer
from vicinal.version import __version__

logger = logging.getLogger("vicinal.serve")

PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorMessage, "description": "The rows do not fit the model"},
    401: {"model": ErrorMessage, "description": "The token is missing or wrong"},
    413: {"model": ErrorMessage, "description": "The body is too large"},
    422: {"model": ErrorMessage, "description": "The request is not of the form described"},
}
SHOWN_PROBLEMS = 5


@dataclass(frozen=True)
class ServeSettings:
    """Limits of a server, and what it allows.

    Parameters
    ----------
    token : str or None, default=None
        What ``Authorization: Bearer`` must hold; None for no token.
    max_rows : int, default=1000
        Rows of a request.
    max_bytes : int, default=5_000_000
        Of the body of a request.
    changes : bool, default=False
        Whether rows may be added and forgotten.
    hosts : tuple of str or None
        Names of the server in the header Host; None for any.
    threads : int, default=4
        Requests that are computed at the same time.
    refresh_seconds : float, default=1.0
        How often is looked whether the file has been replaced.
    """

    token: str | None = None
    max_rows: int = 1000
    max_bytes: int = 5_000_000
    changes: bool = False
    hosts: tuple[str, ...] | None = ("127.0.0.1", "localhost", "[::1]")
    threads: int = 4
    refresh_seconds: float = 1.0


def create_app(source: ModelSource, settings: ServeSettings | None = None) -> Gate:
    """The application of a model, for any ASGI server.

    Parameters
    ----------
    source : ModelSource
        The file of the model.
    settings : ServeSettings or None, default=None
        None for the defaults.

    Returns
    -------
    app : ASGI application
    """
    settings = settings or ServeSettings()
    app = FastAPI(
        title="vicinal",
        version=__version__,
        description="Predictions of one model, and the training rows that they follow from.",
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan(source, settings),
    )
    _add_errors(app)
    _add_questions(app, source, settings)
    if settings.changes:
        _add_changes(app, source, settings)
    _add_pages(app, source)
    return Gate(app, settings.token, settings.max_bytes, settings.hosts)


def _lifespan(source: ModelSource, settings: ServeSettings) -> Callable[[FastAPI], Any]:
    async def watch() -> None:
        while True:
            await asyncio.sleep(settings.refresh_seconds)
            try:
                await to_thread.run_sync(source.refresh)
            except Exception:  # the next look may succeed; the model stays
                logger.exception("the model file could not be looked at")

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = settings.threads + 1
        watching = asyncio.create_task(watch())
        yield
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching

    return lifespan


def _answer(document: object, status: int = 200) -> Response:
    """JSON in ASCII, which can hold any text that JSON has brought."""
    text = json.dumps(document, allow_nan=False)
    return Response(text, status_code=status, media_type="application/json")


def _reply(loaded: LoadedModel, answer: Answer) -> Response:
    return _answer({"rows": answer.rows, "remarks": answer.remarks, "version": loaded.version})


def _add_errors(app: FastAPI) -> None:
    """Errors are one sentence; where they come from is in the log only."""

    @app.exception_handler(ValueError)
    async def refused(_: Request, error: ValueError) -> Response:
        return _answer({"error": str(error)}, 400)

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> Response:
        told = [
            f"{'.'.join(str(part)[:50] for part in found['loc'])}: {found['msg'][:200]}"
            for found in error.errors()[:SHOWN_PROBLEMS]
        ]
        return _answer({"error": "; ".join(told)}, 422)

    @app.exception_handler(HTTPException)
    async def other(_: Request, error: HTTPException) -> Response:
        answer = _answer({"error": str(error.detail)}, error.status_code)
        answer.headers.update(error.headers or {})
        return answer

    @app.exception_handler(Exception)
    async def unexpected(_: Request, error: Exception) -> Response:
        return _answer({"error": "this is a mistake in vicinal; its log says more"}, 500)


def _add_questions(app: FastAPI, source: ModelSource, settings: ServeSettings) -> None:
    @app.post("/predict", response_model=Reply, responses=PROBLEMS)
    def predict(question: Question) -> Response:
        """Predict rows: the class with the probabilities of all classes, or the number."""
        loaded = source.current
        frame = question.frame(settings.max_rows)
        return _reply(loaded, loaded.model.predict(frame, question.ignore_unseen))

    @app.post("/neighbors", response_model=Reply, responses=PROBLEMS)
    def neighbors(question: NeighborQuestion) -> Response:
        """Find the training rows that count most for each row, with their distances."""
        loaded = source.current
        frame = question.frame(settings.max_rows)
        answer = loaded.model.neighbors(frame, question.neighbors, question.ignore_unseen)
        return _reply(loaded, answer)

    @app.post("/explain", response_model=Reply, responses=PROBLEMS)
    def explain(question: NeighborQuestion) -> Response:
        """Explain predictions: neighbors, their part, what each column adds to the distance."""
        loaded = source.current
        frame = question.frame(settings.max_rows)
        answer = loaded.model.explain(frame, question.neighbors, question.ignore_unseen)
        return _reply(loaded, answer)

    @app.get("/info", responses={401: PROBLEMS[401]})
    def info() -> Document:
        """Tell what the model is: target, classes, columns, where it comes from, an example."""
        loaded = source.current
        limits = {"rows": settings.max_rows, "bytes": settings.max_bytes}
        facts = {"version": loaded.version, "limits": limits, "changes": settings.changes}
        return {**loaded.model.info(), **facts}


def _add_changes(app: FastAPI, source: ModelSource, settings: ServeSettings) -> None:
    @app.post("/rows", response_model=Changed, responses=PROBLEMS)
    def add_rows(added: SentRows) -> Response:
        """Let further rows, which have the column of the target, vote; the file stays as it is."""
        frame = added.frame(settings.max_rows)
        return _changed(source.change(lambda model: model.add_rows(frame)))

    @app.post("/rows/forget", response_model=Changed, responses=PROBLEMS)
    def forget_rows(names: RowNames) -> Response:
        """Let training rows vote no longer; the file stays as it is."""
        return _changed(source.change(lambda model: model.forget_rows(names.ids)))


def _changed(loaded: LoadedModel) -> Response:
    return _answer({"rows": loaded.model.info()["rows"], "version": loaded.version})


def _add_pages(app: FastAPI, source: ModelSource) -> None:
    assets = files("vicinal.serve") / "assets"

    @app.get("/health")
    def health() -> Health:
        """Tell that the server answers, and with which model."""
        return Health(status="ok", version=source.current.version, last_error=source.last_error)

    @app.get("/", include_in_schema=False)
    def page() -> HTMLResponse:
        return HTMLResponse((assets / "page.html").read_text(encoding="utf-8"))

    @app.get("/docs", include_in_schema=False)
    def docs() -> HTMLResponse:
        return HTMLResponse((assets / "docs.html").read_text(encoding="utf-8"))
