"""The page that says why a gang or a set waits: as `grove explain`, as far as the viewer may see it."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

from msgspec.structs import replace

from grove import timing
from grove.dashboard.board import Board
from grove.dashboard.cut_texts import cut_event
from grove.dashboard.pages.errors import PageError
from grove.dashboard.pages.explainers import Explained, explainers_of
from grove.dashboard.pages.model import ExplanationPage
from grove.dashboard.pages.names import check_names, exists, kind_and_name, known_objects, missing
from grove.dashboard.pages.visible import visible_explanation, visible_unread
from grove.dashboard.problems import Problem, problem_text
from grove.dashboard.rights import Rights
from grove.explanation.events import Event
from grove.explanation.findings import reason_view
from grove.explanation.history import event_views
from grove.explanation.model import Explanation, ObjectRef
from grove.explanation.reading import SETS
from grove.explanation.subtree import Subtree, UnknownObject, subtree
from grove.kube.client.resource import EVENTS
from grove.kube.errors import ConfigError, KubeError
from grove.logger import get_logger
from grove.views.status.status_view import known_reasons

log = get_logger("grove.dashboard")


async def explanation_page(
    board: Board, rights: Rights, namespace: str, written: str, *, graphs: bool = False
) -> ExplanationPage:
    """Why `gang/NAME` or `set/NAME` waits. `graphs`: whether the viewer may list DynamoGraphDeployments in
    the namespace. Raises PageError."""
    check_names(namespace=namespace)
    kind, name = kind_and_name(written)
    about = ObjectRef(kind, name, namespace)
    if not rights.sees(namespace):
        raise missing(about)
    objects = known_objects(board.objects(namespace), graphs=graphs)
    if not exists(objects, about):
        raise missing(about)
    explained = await _explained(board, rights, about)
    tree = subtree(objects, about)
    unread: list[str] = []
    found = explained.explanation
    if found.waits:
        found = _with_events(found, tree, await _warnings(board, namespace, unread), explained.state.taken_at)
    reasons = known_reasons(tree, board.leases(), explained.state.taken_at)
    own = [reason_view(each, namespace) for each in reasons]
    more = visible_unread(found, explained.state, explained.unplanned, rights)
    return ExplanationPage(visible_explanation(found, rights, own), (*more, *unread))


async def _explained(board: Board, rights: Rights, about: ObjectRef) -> Explained:
    try:
        return await explainers_of(board).explain(
            board, f"{about.kind.lower()}/{about.name}", about.namespace
        )
    except UnknownObject:  # deleted since
        raise missing(about) from None
    except ConfigError as problem:
        line = str(problem).partition(": ask for")[0]
        found = Problem(SETS.label, line)
        raise _unavailable(f"the dashboard cannot explain it: {problem_text(found, rights)}", line) from None
    except KubeError as problem:
        why = f"{problem}; try again" if rights.reads_problems_of("") else "try again later"
        raise _unavailable(f"the cluster cannot be read: {why}", str(problem)) from None


def _unavailable(line: str, reason: str) -> PageError:
    log.warning("explanation failed", key="dashboard", action="answer 503", reason=reason)
    return PageError(HTTPStatus.SERVICE_UNAVAILABLE, line)


async def _warnings(board: Board, namespace: str, unread: list[str]) -> Sequence[Event]:
    try:
        return [each for each in await board.events(namespace) if each.type != "Normal"]
    except KubeError as problem:
        unread.append(f"{EVENTS.label}: {problem}")
        return ()


def _with_events(found: Explanation, tree: Subtree, events: Sequence[Event], now: float) -> Explanation:
    """The latest warnings, as many as `grove explain` shows."""
    views, rows = list(map(cut_event, event_views(tree, events, now))), timing.EXPLAINED_ROWS
    left = {"events": len(views) - rows} if len(views) > rows else {}
    return replace(found, events=tuple(views[-rows:]), more={**found.more, **left})
