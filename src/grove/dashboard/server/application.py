"""The routes of the dashboard, and what applies to every request: origin, errors, headers, limits."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from http import HTTPStatus

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from grove import timing
from grove.dashboard.access.caller import Access
from grove.dashboard.access.errors import TooMany
from grove.dashboard.pages.errors import PageError
from grove.dashboard.server.answers import error_answer
from grove.dashboard.server.api import Api
from grove.dashboard.server.board_slot import BoardSlot
from grove.dashboard.server.page_functions import Pages
from grove.dashboard.server.requests.origins import foreign_host, foreign_request
from grove.dashboard.server.security_headers import add_security_headers
from grove.dashboard.server.session_routes import SessionRoutes
from grove.dashboard.server.static_files import INDEX, StaticFile, answer_file
from grove.kube.server.connection import answering
from grove.kube.server.refusals import Refusal, Refusals
from grove.logger import get_logger

log = get_logger("grove.dashboard")
PROBES = frozenset({"/healthz", "/readyz"})


def application(
    slot: BoardSlot,
    access: Access,
    pages: Pages,
    files: Mapping[str, StaticFile],
    refusals: Refusals,
    *,
    hosts: frozenset[str] | None,
    tls: bool,
) -> web.Application:
    """The application. `hosts`: the Host headers that are accepted; None: any."""
    stopping = asyncio.Event()
    app = web.Application(
        middlewares=[_answer_errors(refusals), _refuse_foreign(hosts, tls)],
        client_max_size=timing.SIGN_IN_BODY,
    )
    add_security_headers(app, tls=tls)
    api = Api(slot, access, pages, refusals, stopping)
    for path, handler in api.routes.items():
        app.router.add_get(f"/api/{path}", handler, allow_head=False)
    if access.sessions is not None:
        session_routes = SessionRoutes(access.sessions)
        app.router.add_post("/api/sign-in", session_routes.sign_in)
        app.router.add_post("/api/sign-out", session_routes.sign_out)
    _add_files(app, files)
    _add_probes(app, slot)

    async def stop(_app: web.Application) -> None:
        stopping.set()

    app.on_shutdown.append(stop)
    return app


def _add_files(app: web.Application, files: Mapping[str, StaticFile]) -> None:
    async def index(request: web.Request) -> web.StreamResponse:
        return answer_file(request, files, INDEX)

    async def file(request: web.Request) -> web.StreamResponse:
        return answer_file(request, files, request.match_info["name"])

    app.router.add_get("/", index)
    app.router.add_get("/static/{name:.+}", file)


def _add_probes(app: web.Application, slot: BoardSlot) -> None:
    async def alive(_request: web.Request) -> web.StreamResponse:
        return web.Response(text="ok\n")

    async def ready(_request: web.Request) -> web.StreamResponse:
        if slot.is_ready:
            return web.Response(text="ok\n")
        waiting = "waiting for the objects of the cluster\n"
        return web.Response(status=HTTPStatus.SERVICE_UNAVAILABLE, text=waiting)

    app.router.add_get("/healthz", alive)
    app.router.add_get("/readyz", ready)


def _answer_errors(refusals: Refusals) -> Middleware:
    @web.middleware
    async def answer(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            with answering(request):
                return await handler(request)
        except TooMany as problem:
            refusals.record(Refusal.OVERLOADED, problem.message, request.remote or "")
            return error_answer(problem.status, problem.message, problem.retry_after)
        except PageError as problem:
            return error_answer(problem.status, problem.message)
        except web.HTTPException as problem:
            return _http_error(problem)
        except Exception as bug:
            log.exception("request failed", key=request.path, action="answer 500", reason=str(bug))
            line = "the dashboard has failed to answer: see its log, and report the error"
            return error_answer(HTTPStatus.INTERNAL_SERVER_ERROR, line)

    return answer


def _http_error(problem: web.HTTPException) -> web.StreamResponse:
    status = HTTPStatus(problem.status)
    lines = {
        HTTPStatus.NOT_FOUND: "there is nothing at this address: open the dashboard at /",
        HTTPStatus.METHOD_NOT_ALLOWED: "this address does not have this method: use GET",
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE: f"the body has more than {timing.SIGN_IN_BODY} bytes: send less",
    }
    reply = error_answer(status, lines.get(status, status.phrase.lower()))
    if "Allow" in problem.headers:
        reply.headers["Allow"] = problem.headers["Allow"]
    return reply


def _refuse_foreign(hosts: frozenset[str] | None, tls: bool) -> Middleware:
    scheme = "https" if tls else "http"

    @web.middleware
    async def refuse(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path in PROBES:  # kubelets send the address of the pod; the answers are for everyone
            return await handler(request)
        if why := foreign_host(hosts, request.host):
            raise PageError(HTTPStatus.MISDIRECTED_REQUEST, why)
        if request.path.startswith("/api/"):
            if why := foreign_request(request.method, request.headers, request.host, scheme):
                raise PageError(HTTPStatus.FORBIDDEN, why)
            if len(request.rel_url.raw_query_string) > timing.MAX_QUERY:
                line = f"the query has more than {timing.MAX_QUERY} bytes: send less"
                raise PageError(HTTPStatus.BAD_REQUEST, line)
        return await handler(request)

    return refuse
