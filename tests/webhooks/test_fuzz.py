"""Malformed and huge reviews: all are answered, with bounded work and memory, and without internal errors."""

from __future__ import annotations

import asyncio
import json
import sys
import tracemalloc
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.registry import KINDS
from grove.rules.model import Facts
from grove.rules.podcliqueset.defaults import default_set
from grove.webhooks.admission_review import InvalidReview
from grove.webhooks.registrations import Path
from tests.fuzzing import budget, seeds
from tests.rules.builders import in_use
from tests.webhooks.reviews import GRAPH, SET, TOPOLOGY, Body, patched, respond, review, reviewer, workload

quick = budget(80)
FACTS = Facts(
    backends=in_use("kai-scheduler", "volcano"),
    topology_aware=True,
    operator_user="system:serviceaccount:grove-system:grove-operator",
)
WORDS = sorted(
    {field for kind in KINDS for field in kind.__struct_encode_fields__}
    | {"spec", "template", "cliques", "name", "labels", "annotations", "metadata", "podSpec", "replicas"}
    | {"minAvailable", "podCliqueScalingGroups", "cliqueNames", "startsAfter", "env", "containers"}
    | {"topologyConstraint", "packDomain", "pack", "levels", "domain", "key", "autoScalingConfig"}
    | {"resourceSharing", "resourceClaimTemplates", "filter", "scaleConfig", "terminationDelay"}
)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    scalars | st.text(max_size=8) | st.sampled_from(["", "a", "A", "-", "a" * 300, "4h", "-1s", "\0"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=4), inner, max_size=6)
    ),
    max_leaves=40,
)


def places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value in a document."""
    inner = (
        document.items()
        if isinstance(document, dict)
        else enumerate(document)
        if isinstance(document, list)
        else ()
    )
    return [path, *(place for key, value in inner for place in places(value, (*path, key)))]


def replaced(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copied = dict(document) if isinstance(document, dict) else list(document)
    copied[path[0]] = replaced(document[path[0]], path[1:], value)
    return copied


RICH = default_set(
    workload(
        cliqueStartupType="CliqueStartupTypeExplicit",
        podCliqueScalingGroups=[
            {"name": "g", "cliqueNames": ["worker"], "replicas": 2, "scaleConfig": {"maxReplicas": 3}}
        ],
        topologyConstraint={"topologyName": "t", "pack": {"required": "rack", "preferred": "host"}},
        resourceClaimTemplates=[{"name": "c", "templateSpec": {"spec": {"devices": {"requests": [{}]}}}}],
        resourceSharing=[{"name": "c", "scope": "AllReplicas", "filter": {"childCliqueNames": ["worker"]}}],
    )
)
spoiled = st.builds(replaced, st.just(RICH), st.sampled_from(places(RICH)), json_values)
objects = spoiled | json_values
operations = st.sampled_from(["CREATE", "UPDATE", "DELETE", "CONNECT", "", "PATCH"])


REVIEWER = reviewer(FACTS)


def ask(path: str, body: Any) -> Body:
    return asyncio.run(respond(REVIEWER, path, body))


def check(path: str, response: Body) -> None:
    assert response["allowed"] or response["status"]["code"] in (400, 403)
    assert len(json.dumps(response)) < 2_000_000
    if not response["allowed"]:
        assert "internal error of the Grove operator" not in response["status"]["message"]


@pytest.mark.parametrize("path", Path)
@quick
@given(new=objects, old=objects, operation=operations, resource=st.sampled_from([SET, TOPOLOGY, GRAPH]))
@example(new=RICH, old=RICH, operation="UPDATE", resource=SET)
def test_every_object_is_answered(path, new, old, operation, resource):
    response = ask(path, review(operation, new, old, resource))
    check(path, response)


@quick
@given(new=spoiled)
def test_default_patch_applies_and_is_idempotent(new):
    """For any object the patch can be applied, and a second review returns no patch."""
    if not isinstance(new, dict):
        return
    response = ask(Path.DEFAULT_SET, review("CREATE", new))
    after = patched(new, response)
    again = ask(Path.DEFAULT_SET, review("CREATE", after))
    assert "patch" not in again


@pytest.mark.parametrize("path", Path)
@quick
@given(body=st.binary(max_size=200) | json_values.map(lambda value: json.dumps(value).encode()))
def test_every_body_is_answered(path, body):
    with suppress(InvalidReview):
        check(path, ask(path, body))


@pytest.mark.parametrize("path", Path)
def test_corrupted_bytes_are_answered(path):
    whole = json.dumps(review("UPDATE", RICH, RICH)).encode()
    for _, chance in seeds(200):
        body = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            body[chance.randrange(len(body))] = chance.randrange(256)
        with suppress(InvalidReview):
            check(path, ask(path, bytes(body)))


def many_cliques(count: int) -> Body:
    cliques = [{"name": f"c{n}", "spec": {"podSpec": {}, "startsAfter": [f"c{n - 1}"]}} for n in range(count)]
    return default_set(workload(cliqueStartupType="CliqueStartupTypeExplicit", cliques=cliques))


def cyclic_start_order(count: int) -> Body:
    body = many_cliques(count)
    body["spec"]["template"]["cliques"][0]["spec"]["startsAfter"] = [f"c{count - 1}"]
    return body


def identical_cliques(count: int) -> Body:
    clique = default_set(workload())["spec"]["template"]["cliques"][0]
    return workload(cliques=[clique] * count)


def all_start_after_all(count: int) -> Body:
    body = many_cliques(count)
    for clique in body["spec"]["template"]["cliques"]:
        clique["spec"]["startsAfter"] = [f"c{n}" for n in range(count)]
    return body


def many_variables(count: int) -> Body:
    body = workload()
    env = [{"name": "A"}] * count
    body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"][0]["env"] = env
    return body


def many_groups(count: int) -> Body:
    groups = [{"name": f"g{n}", "cliqueNames": ["worker", f"x{n}"]} for n in range(count)]
    return workload(podCliqueScalingGroups=groups)


def long_words(count: int) -> Body:
    body = workload(terminationDelay="9" * count, cliqueStartupType="x" * count)
    body["metadata"]["labels"] = {"a-" * (count // 4): "b." * (count // 4)}
    body["metadata"]["name"] = "a-" * (count // 4) + "!"
    return body


HUGE = {
    many_cliques: 1_000,
    cyclic_start_order: 1_000,
    identical_cliques: 1_000,
    all_start_after_all: 200,
    many_variables: 20_000,
    many_groups: 2_000,
    long_words: 1_000_000,
}


@pytest.mark.parametrize("path", [Path.DEFAULT_SET, Path.VALIDATE_SET])
@pytest.mark.parametrize("make", HUGE, ids=lambda make: make.__name__)
@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
def test_work_is_not_quadratic_in_object_size(make, path, operation):
    """Steps are counted, not seconds: four times the object may take eight times the steps, not sixteen."""
    steps = [work(path, operation, make(count)) for count in (HUGE[make] // 4, HUGE[make])]
    squared = make is all_start_after_all  # its size is the square of its count
    assert steps[1] < steps[0] * (40 if squared else 8) + 10_000


def work(path: str, operation: str, body: Body) -> int:
    """The number of function calls for one response: the same on every machine."""
    sent = json.dumps(review(operation, body, body)).encode()
    count = 0

    def counted(*_: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(counted)
    try:
        response = ask(path, sent)
    finally:
        sys.setprofile(None)
    check(path, response)
    return count


def test_memory_is_bounded_by_request_size():
    sent = json.dumps(review("CREATE", identical_cliques(1_000))).encode()
    tracemalloc.start()
    try:
        ask(Path.VALIDATE_SET, sent)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40 * len(sent)


def test_fuzz_words_include_api_fields():
    assert {"metadata", "spec", "status"} <= set(PodCliqueSet.__struct_encode_fields__) <= set(WORDS)
