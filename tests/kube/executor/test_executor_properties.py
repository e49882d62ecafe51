"""Properties of the executor for any plan and any answers: dependencies are kept, each intent has a
result."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from grove.api.intents import Create, Intent, Status, Target
from grove.kube.client.resource import PODS
from grove.kube.client.transport import Request
from grove.kube.errors import LostReply
from grove.kube.executor.executor import Executor
from grove.kube.executor.outcome import IntentState, Outcome
from grove.kube.executor.write_limiter import LimitBounds, WriteLimiter
from grove.kube.testing.virtual_time import run_in_virtual_time
from tests.kube.executor.stub_transport import Answer, StubTransport, created_reply, refused

SLOTS = 3
KINDS = ["done", "done", "done", "forbidden", "conflict", "lost", "busy"]

nodes = st.tuples(
    st.sampled_from(KINDS),
    st.sampled_from([0.01, 0.1, 0.9, 3.0]),
    st.booleans(),
    st.frozensets(st.integers(0, 30), max_size=3),
)
graphs = st.lists(nodes, max_size=30)
Graph = list[tuple[str, float, bool, frozenset[int]]]


def planned(graph: Graph) -> list[Intent]:
    """Intents named by their index; each may depend on any that come before it."""
    plan: list[Intent] = []
    for index, (_, _, is_status, wanted) in enumerate(graph):
        after = tuple(plan[number].id for number in sorted(wanted) if number < index)
        target = Target("v1", "Pod", str(index), "n")
        body = {"metadata": {"name": str(index)}}
        plan.append(Status(target, body, after=after) if is_status else Create(target, body, after))
    return plan


class Server:
    """Answers each intent with the kind in the graph; `busy` answers 429 once, then done."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._was_busy: set[int] = set()
        self.replies = StubTransport(self.answer, latency=lambda request: graph[self.index(request)][1])

    @staticmethod
    def index(request: Request) -> int:
        return int(request.name or request.body.split(b'"name":"')[1].split(b'"')[0])  # type: ignore[union-attr]

    def answer(self, request: Request) -> Answer:
        index = self.index(request)
        kind = self._graph[index][0]
        if not request.is_write:
            return refused(404, "NotFound", name=str(index))
        if kind == "busy" and index not in self._was_busy:
            self._was_busy.add(index)
            return refused(429, "TooManyRequests")
        answers: dict[str, Answer] = {
            "forbidden": refused(403, "Forbidden"),
            "conflict": refused(409, "Conflict"),
            "lost": LostReply("cut"),
        }
        return answers.get(kind) or created_reply(request)


def check_order(graph: Graph, plan: list[Intent], outcome: Outcome, server: Server) -> None:
    good = {"done", "busy"}
    done = {result.intent.id for result in outcome.results if result.state is IntentState.DONE}
    first_sent: dict[str, float] = {}
    last_reply: dict[str, float] = {}
    for sent in server.replies.sent:
        if sent.request.is_write:
            name = plan[server.index(sent.request)].id
            first_sent.setdefault(name, sent.began)
            last_reply[name] = sent.ended
    for (kind, _, _, _), intent in zip(graph, plan, strict=True):
        may_go = all(dependency in done for dependency in intent.after)
        assert (intent.id in first_sent) == may_go, "sent exactly if all it depends on succeeded"
        assert (intent.id in done) == (may_go and kind in good)
        for dependency in intent.after if may_go else ():
            assert last_reply[dependency] <= first_sent[intent.id], "after what it depends on"


@settings(max_examples=200, deadline=None)
@given(graphs)
def test_any_plan_is_executed_in_order_and_completely(graph: Graph) -> None:
    plan = planned(graph)
    server = Server(graph)

    async def run() -> Outcome:
        limiter = WriteLimiter(LimitBounds(SLOTS, SLOTS, SLOTS))
        outcome = await Executor(server.replies, [PODS], limiter=limiter).execute(plan)
        assert (limiter.in_flight, limiter.slow_in_flight) == (0, 0)
        return outcome

    outcome = run_in_virtual_time(run())
    assert [result.intent for result in outcome.results] == plan
    slow = 2 * SLOTS if any(latency > 1.0 for _, latency, *_ in graph) else 0
    reads = sum(kind in ("lost", "conflict") for kind, *_ in graph)
    assert server.replies.most_in_flight <= SLOTS + slow + reads
    sent_skipped = [
        result for result in outcome.results if result.state is IntentState.SKIPPED and result.error
    ]
    assert not sent_skipped
    check_order(graph, plan, outcome, server)
