"""Reviews as the API server answers them: which tokens are valid, and who may list what."""

from __future__ import annotations

import json

from grove.dashboard.access.rights_reviewer import RightsReviewer
from grove.dashboard.access.sign_in import SignInAccess
from grove.dashboard.access.token_reviewer import TokenReviewer
from grove.kube.client.client import Client
from grove.kube.client.transport import Request, Response
from tests.dashboard.access.test_rate_limiter import Clock
from tests.kube.executor.stub_transport import StubTransport, refused


class Reviews:
    """Tokens by user; `may_list` has (resource, namespace), with `*` for any resource."""

    def __init__(self, *namespaces: str) -> None:
        self.namespaces = frozenset(namespaces)
        self.users = {"good": "jane"}
        self.may_list: set[tuple[str, str]] = set()
        self.down = False
        self.asked: list[dict[str, object]] = []
        self.clock = Clock()
        self.transport = StubTransport(self._answer, lambda _: 0.0)
        client = Client(self.transport)
        self.tokens = TokenReviewer(client, self.clock)
        self.rights = RightsReviewer(client, lambda: self.namespaces, self.clock)
        self.access = SignInAccess(self.tokens, self.rights, self.clock)

    def _answer(self, request: Request) -> Response:
        if self.down:
            return refused(403, "Forbidden")
        spec = json.loads(request.body or b"")["spec"]
        self.asked.append(spec)
        return Response(201, {}, json.dumps({"status": self._status(spec)}).encode())

    def _status(self, spec: dict[str, object]) -> dict[str, object]:
        if "token" in spec:
            name = self.users.get(str(spec["token"]))
            user = {"username": name, "uid": "1", "groups": ["g"], "extra": {"k": ["v"]}}
            return {"authenticated": True, "user": user} if name else {"error": "invalid bearer token"}
        asked = spec["resourceAttributes"]
        assert isinstance(asked, dict)
        label = ".".join(filter(None, (asked["resource"], asked["group"])))
        places = (asked["namespace"], "")
        return {"allowed": any((what, place) in self.may_list for what in (label, "*") for place in places)}
