"""Links of the page: everything survives the way into a link and back."""

from __future__ import annotations

import pytest

ROUTES = [
    ("#/map", {"name": "map", "path": [], "query": {}}),
    ("", {"name": "map", "path": [], "query": {}}),
    ("#/waiting/team-a/demo-0", {"name": "waiting", "path": ["team-a", "demo-0"], "query": {}}),
    (
        "#/map?set=team-a/demo&level=rack",
        {"name": "map", "path": [], "query": {"set": "team-a/demo", "level": "rack"}},
    ),
    ("#/workloads/a%2Fb/%E2%82%AC", {"name": "workloads", "path": ["a/b", "€"], "query": {}}),
    ("#/map/%zz?a=%zz", {"name": "map", "path": ["%zz"], "query": {"a": "%zz"}}),
    ("#//map", {"name": "map", "path": [], "query": {}}),
]
PARSE = """(router, hash) => {
  const found = router.parse(hash);
  return { ...found, query: Object.fromEntries(found.query) };
}"""
NAMES = ["demo", "a/b", "a?b=c&d", "#x", "100%", "é €", "<script>"]


async def test_links_are_parsed(call):
    for hash_, expected in ROUTES:
        assert await call("router.js", PARSE, hash_) == expected, hash_


async def test_built_link_is_parsed_to_its_parts(call):
    build = """(router, names) => names.map((name) => {
      const built = router.link(["workloads", name, name], { object: name, empty: "" });
      const { path, query } = router.parse(built);
      return [...path, query.get("object"), query.has("empty")];
    })"""
    assert await call("router.js", build, NAMES) == [[name, name, name, False] for name in NAMES]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"level": "block"}, "#/map?set=a/b&level=block"),
        ({"level": ""}, "#/map?set=a/b"),
        ({"set": None, "level": None}, "#/map"),
    ],
)
async def test_changed_parameters_keep_the_others(call, changes, expected):
    change = """(router, changes) => router.changed(router.parse("#/map?set=a/b&level=rack"), changes)"""
    assert await call("router.js", change, changes) == expected
