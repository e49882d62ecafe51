"""The API of the page. Each answer shows only what its caller may see: a namespace that they do not see is
answered as one that does not exist."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler
from msgspec.structs import replace

from grove import timing
from grove.api.types.podcliqueset import PodCliqueSet
from grove.dashboard.access.caller import Access, Caller
from grove.dashboard.board import Board
from grove.dashboard.model import Picture
from grove.dashboard.pages.errors import PageError
from grove.dashboard.pages.names import kind_and_name, known_kind, missing
from grove.dashboard.rights import Rights
from grove.dashboard.server.answers import json_answer, text_answer
from grove.dashboard.server.board_slot import BoardSlot
from grove.dashboard.server.page_functions import Pages, Result
from grove.dashboard.server.requests import parameters
from grove.dashboard.server.requests.limits import Limits
from grove.dashboard.server.requests.parameters import Parameter
from grove.dashboard.server.requests.presented import presented
from grove.dashboard.server.stream.event_stream import EventStream, PeerGone
from grove.dashboard.server.stream.live import LivePage
from grove.dashboard.server.stream.open_streams import OpenStreams
from grove.explanation.model import ObjectRef
from grove.explanation.reading import GRAPHS, RESOURCES
from grove.kube.client.resource import Resource
from grove.kube.errors import KubeError
from grove.kube.server.refusals import Refusals
from grove.logger import get_logger

log = get_logger("grove.dashboard")

_OBJECT = {"namespace": parameters.NAMESPACE, "name": parameters.NAME}
_STREAM = {"since": parameters.VERSION}


class Api:
    """The handlers of all GET requests under `/api/`."""

    def __init__(
        self, slot: BoardSlot, access: Access, pages: Pages, refusals: Refusals, stopping: asyncio.Event
    ) -> None:
        self._slot, self._access, self._pages = slot, access, pages
        self._refusals, self._stopping = refusals, stopping
        self._limits, self._streams = Limits(), OpenStreams()

    @property
    def routes(self) -> Mapping[str, Handler]:
        """The handler of each path."""
        return {
            "picture": self._picture,
            "stream": self._stream,
            "explanation": self._explanation,
            "workload": self._workload,
            "object": self._object,
            "node": self._node,
            "search": self._search,
        }

    @property
    def _board(self) -> Board:
        return self._slot.board

    async def _caller(
        self, request: web.Request, wanted: Mapping[str, Parameter], cost: int = 1
    ) -> tuple[Caller, dict[str, str]]:
        """The sender and the parameters of a request. Raises PageError."""
        caller = await self._access.caller(presented(request))
        self._limits.check(caller.key, cost)
        given = parameters.read(request.query, wanted)
        if "namespace" in given and not caller.rights.sees(given["namespace"]):
            raise missing(_about(given))
        return caller, given

    async def _picture(self, request: web.Request) -> web.StreamResponse:
        caller, _ = await self._caller(request, {}, timing.COSTLY_REQUEST)
        return await json_answer(request, self._seen_by(caller))

    def _seen_by(self, caller: Caller) -> Picture:
        picture = self._board.picture(caller.rights)
        viewer = replace(picture.viewer, name=caller.user, signs_in=self._access.sessions is not None)
        return replace(picture, viewer=viewer)

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        caller, given = await self._caller(request, _STREAM, timing.COSTLY_REQUEST)
        # A browser that comes back sends the last version that it has, and the address of its first request.
        last = request.headers.get("Last-Event-ID", "")
        since = last if last and parameters.VERSION.accepts(last) else given["since"]
        events = EventStream(request, self._refusals)
        page = LivePage(self._board, self._access, presented(request), caller, events)
        with self._streams.opened(caller.key), suppress(PeerGone):
            await events.open()
            await page.run(since, self._stopping)
        return events.response

    async def _explanation(self, request: web.Request) -> web.StreamResponse:
        wanted = {"namespace": parameters.NAMESPACE, "name": parameters.SUBJECT}
        caller, given = await self._caller(request, wanted)
        async with self._limits.explaining(caller.key):
            graphs = await self._may_list(request, GRAPHS, given["namespace"])
            found = self._pages.explanation(
                self._board, caller.rights, given["namespace"], given["name"], graphs=graphs
            )
            return await json_answer(request, await _result(found, caller.rights))

    async def _workload(self, request: web.Request) -> web.StreamResponse:
        caller, given = await self._caller(request, _OBJECT, timing.COSTLY_REQUEST)
        graphs = await self._may_list(request, GRAPHS, given["namespace"])
        found = self._pages.workload(
            self._board, caller.rights, given["namespace"], given["name"], graphs=graphs
        )
        return await json_answer(request, await _result(found, caller.rights))

    async def _object(self, request: web.Request) -> web.StreamResponse:
        caller, given = await self._caller(request, {**_OBJECT, "kind": parameters.KIND})
        about = _about(given)
        if not await self._may_list(request, RESOURCES[about.kind], about.namespace):
            raise missing(about)  # a graph, which is not among the kinds that the page shows
        found = self._pages.object_yaml(
            self._board, caller.rights, given["namespace"], given["kind"], given["name"]
        )
        return await text_answer(request, str(await _result(found, caller.rights)))

    async def _may_list(self, request: web.Request, resource: Resource, namespace: str) -> bool:
        """Whether the sender may list a kind. DynamoGraphDeployments are not among the kinds that they may
        list in every namespace that they see."""
        return await self._access.may_list(presented(request), resource, namespace)

    async def _node(self, request: web.Request) -> web.StreamResponse:
        caller, given = await self._caller(request, {"name": parameters.NODE})
        found = self._pages.node(self._board, caller.rights, given["name"])
        return await json_answer(request, await _result(found, caller.rights))

    async def _search(self, request: web.Request) -> web.StreamResponse:
        caller, given = await self._caller(request, {"q": parameters.TEXT}, timing.COSTLY_REQUEST)
        found = self._pages.search(self._board, caller.rights, given["q"])
        return await json_answer(request, await _result(found, caller.rights))


def _about(given: Mapping[str, str]) -> ObjectRef:
    """The object that a request asks for: `gang/demo-0`, one of a kind, or a set."""
    if "/" in given["name"]:
        kind, name = kind_and_name(given["name"])
    else:
        kind, name = known_kind(given.get("kind", "")) or PodCliqueSet.KIND.name, given["name"]
    return ObjectRef(kind, name, given["namespace"])


async def _result(found: Result, rights: Rights) -> Any:
    """What a function of a page returns, at once or later. Raises PageError."""
    try:
        return await found if inspect.isawaitable(found) else found
    except KubeError as problem:
        log.warning("page failed", key="dashboard", action="answer 503", reason=str(problem))
        why = f" ({problem})" if rights.reads_problems_of("") else ""
        line = f"the API server does not answer as needed{why}: try again later"
        raise PageError(HTTPStatus.SERVICE_UNAVAILABLE, line) from None
