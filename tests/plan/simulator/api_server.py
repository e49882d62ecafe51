"""The semantics of an API server in memory: names, UIDs, versions, generations, preconditions.

Only for tests and fault campaigns of plans; every scenario also runs on a real one. Objects are kept as JSON,
so that everything that a plan reads and writes is encoded and decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

Body = dict[str, Any]
Key = tuple[str, str]
"""Kind and name: there is one namespace."""

NO_STATUS_BY_PATCH = frozenset({"PodCliqueSet", "PodClique", "PodCliqueScalingGroup", "PodGang", "Pod"})
METRICS_BY_DEFAULT = (
    {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
    },
)
"""The default metrics of an autoscaler."""
decode, encode = msgspec.json.decode, msgspec.json.encode


class Refused(Exception):
    """The server refused the request."""


class AlreadyExists(Refused): ...


class NotFound(Refused): ...


class Conflict(Refused): ...


class Write:
    """A change of an object: `before` and `after` are JSON, None if there is no object."""

    __slots__ = ("after", "before", "by", "key", "verb")

    def __init__(self, by: str, verb: str, key: Key, before: bytes | None, after: bytes | None) -> None:
        self.by, self.verb, self.key, self.before, self.after = by, verb, key, before, after

    def __repr__(self) -> str:
        return f"{self.by}: {self.verb} {' '.join(self.key)}"


class ApiServer:
    """All objects of one namespace, every state that each kind has been in, and every write."""

    def __init__(self, timestamp: Callable[[], str]) -> None:
        self.version = 100
        self.history: list[Write] = []
        self.past: dict[str, list[dict[str, bytes]]] = {}
        self._timestamp = timestamp

    def copy(self, timestamp: Callable[[], str]) -> ApiServer:
        twin = ApiServer(timestamp)
        twin.version, twin.history = self.version, [*self.history]
        twin.past = {kind: [*states] for kind, states in self.past.items()}
        return twin

    def all(self, kind: str) -> dict[str, bytes]:
        """The objects of a kind, as they are now."""
        states = self.past.get(kind)
        return states[-1] if states else {}

    def objects(self, kind: str) -> Iterator[Body]:
        return map(decode, self.all(kind).values())

    def get(self, kind: str, name: str) -> Body:
        found = self.all(kind).get(name)
        if found is None:
            raise NotFound(f"{kind} {name}")
        body: Body = decode(found)
        return body

    def create(self, body: Body, by: str = "user") -> Body:
        """Creates an object; the server sets its own fields."""
        key = (body["kind"], body["metadata"]["name"])
        if key[1] in self.all(key[0]):
            raise AlreadyExists(" ".join(key))
        self.version += 1
        own = {
            "uid": f"uid-{self.version}",
            "resourceVersion": str(self.version),
            "generation": 1,
            "creationTimestamp": self._timestamp(),
        }
        created = {**body, "metadata": {**body["metadata"], **own}}
        created.pop("status", None)
        if key[0] == "Pod":
            created["status"] = {"phase": "Pending"}
        self._store(by, "create", key, None, created)
        return created

    def patch(self, kind: str, name: str, patch: Any, *, status: bool = False, by: str = "user") -> Body:
        """A merge patch if it is an object, a JSON patch if it is a list."""
        before = self.all(kind).get(name)
        if before is None:
            raise NotFound(f"{kind} {name}")
        current: Body = decode(before)
        patched = json_patch(decode(before), patch) if isinstance(patch, list) else merge(current, patch)
        for guarded in ("uid", "resourceVersion"):
            if patched["metadata"].get(guarded) != current["metadata"][guarded]:
                raise Conflict(f"{kind} {name}: {guarded}")
        if status:
            patched = {**current, "status": patched.get("status", {})}
        elif kind in NO_STATUS_BY_PATCH:
            patched = {**patched, "status": current.get("status", {})}
        return self._update(by, (kind, name), before, current, patched)

    def _update(self, by: str, key: Key, before: bytes, current: Body, patched: Body) -> Body:
        if patched == {"status": {}, **current}:
            return current  # a write without a change
        meta = {**patched["metadata"]}
        if meta.get("deletionTimestamp") and not meta.get("finalizers") and key[0] != "Pod":
            self._store(by, "update", key, before, None)
            return patched
        self.version += 1
        meta["resourceVersion"] = str(self.version)
        if patched["spec"] != current["spec"]:
            meta["generation"] += 1
        patched["metadata"] = meta
        self._store(by, "update", key, before, patched)
        return patched

    def delete(self, kind: str, name: str, uid: str = "", by: str = "user") -> None:
        """Pods with a node and objects with finalizers become terminating; all others are removed."""
        before = self.all(kind).get(name)
        if before is None:
            raise NotFound(f"{kind} {name}")
        current: Body = decode(before)
        meta = current["metadata"]
        if uid and uid != meta["uid"]:
            raise Conflict(f"{kind} {name}")
        if meta.get("deletionTimestamp"):
            return
        lingers = meta.get("finalizers") or (kind == "Pod" and current["spec"].get("nodeName"))
        if not lingers:
            self._store(by, "delete", (kind, name), before, None)
            return
        self.version += 1
        meta |= {"deletionTimestamp": self._timestamp(), "resourceVersion": str(self.version)}
        self._store(by, "delete", (kind, name), before, current)

    def vanish(self, kind: str, name: str, by: str) -> None:
        """Removes an object at once, in any state."""
        self._store(by, "vanish", (kind, name), self.all(kind)[name], None)

    def _store(self, by: str, verb: str, key: Key, before: bytes | None, after: Body | None) -> None:
        kind, name = key
        states = self.past.setdefault(kind, [{}])
        now = {**states[-1]}
        if after is not None and kind == "HorizontalPodAutoscaler":
            after["spec"].setdefault("metrics", METRICS_BY_DEFAULT)
        written = encode(after) if after is not None else None
        if written is None:
            del now[name]
        else:
            now[name] = written
        states.append(now)
        self.history.append(Write(by, verb, key, before, written))


def merge(current: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    merged = {**current} if isinstance(current, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


def json_patch(document: Any, operations: list[Body]) -> Any:
    """RFC 6902, as far as the plan speaks it: `test` and `remove`."""
    for operation in operations:
        *way, last = [part.replace("~1", "/") for part in operation["path"].split("/")[1:]]
        try:
            place = document
            for step in way:
                place = place[int(step)] if isinstance(place, list) else place[step]
            at: Any = int(last) if isinstance(place, list) else last
            if operation["op"] == "remove":
                del place[at]
            elif place[at] != operation["value"]:
                raise Conflict(f"test {operation['path']}")
        except (KeyError, IndexError) as missing:
            raise Conflict(f"no {operation['path']}") from missing
    return document
