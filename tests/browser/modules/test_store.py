"""The store: a picture and its deltas give the picture that the server has now."""

from __future__ import annotations

import pytest

PICTURE = {
    "version": "1",
    "now": "2026-01-01T00:00:00Z",
    "source": {"name": "https://127.0.0.1:6443"},
    "topologies": [{"name": "default", "levels": [{"name": "rack", "label": "rack"}]}],
    "nodes": {"a": {"gpus": 8, "uses": [{"gang": "x/g", "gpus": 8, "pods": 1}]}, "b": {"gpus": 8}},
    "gangs": {"x/g": {"set": "x/s"}},
    "sets": {"x/s": {"verdict": "Ready", "replicas": 1}},
}
APPLY = """(store, [picture, deltas]) => {
  const found = new store.Store();
  const seen = [];
  found.addEventListener("change", (event) => seen.push(event.detail?.version ?? null));
  found.load(picture);
  deltas.forEach((delta) => found.apply(delta));
  return { picture: found.picture, seen };
}"""


async def applied(call, *deltas):
    return await call("store.js", APPLY, [PICTURE, list(deltas)])


def delta(version: int, **parts: object) -> dict[str, object]:
    return {"version": str(version), "now": f"2026-01-01T00:00:0{version}Z", **parts}


async def test_object_of_delta_replaces_the_one_before(call):
    found = await applied(call, delta(2, nodes={"a": {"gpus": 4}}))
    assert found["picture"]["nodes"]["a"]["gpus"] == 4
    assert found["picture"]["nodes"]["a"]["uses"] == []
    assert found["picture"]["nodes"]["b"]["gpus"] == 8


@pytest.mark.parametrize(("part", "key"), [("nodes", "a"), ("gangs", "x/g"), ("sets", "x/s")])
async def test_null_removes_an_object(call, part, key):
    found = await applied(call, delta(2, **{part: {key: None}}))
    assert key not in found["picture"][part]
    assert found["picture"]["version"] == "2"


async def test_missing_field_has_not_changed(call):
    found = await applied(call, delta(2), delta(3, unread=["pods: forbidden"]), delta(4))
    assert found["picture"]["topologies"][0]["name"] == "default"
    assert found["picture"]["unread"] == ["pods: forbidden"]


async def test_each_change_is_announced_with_its_delta(call):
    assert (await applied(call, delta(2), delta(3)))["seen"] == [None, "2", "3"]


async def test_names_of_object_prototype_do_no_harm(call):
    names = ["__proto__", "constructor", "toString"]
    found = await call(
        "store.js",
        """(store, names) => {
          const found = new store.Store();
          const now = "2026-01-01T00:00:00Z";
          found.load({ version: "1", now, source: { name: "a" } });
          for (const name of names)
            found.apply({ version: "2", now, nodes: JSON.parse(`{"${name}": {"gpus": 8}}`) });
          return ({}).gpus === undefined;
        }""",
        names,
    )
    assert found, "the prototype of all objects has changed"
