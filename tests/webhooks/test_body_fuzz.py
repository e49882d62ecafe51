"""Reviews of real manifests with random faults, over HTTP: each is answered, with a message of one line."""

from __future__ import annotations

import asyncio
import json
from itertools import product
from random import Random
from typing import Any

import aiohttp
import msgspec
from structlog.testing import capture_logs

from grove.api.json_depth import too_deep
from grove.kube.server.refusals import Refusal
from grove.rules.model import Facts
from grove.webhooks import server
from tests.fuzzing import seeds
from tests.rules.builders import in_use
from tests.webhooks.http_server import serving
from tests.webhooks.mutations import PATHS, Mutator, manifests
from tests.webhooks.reviews import review, reviewer
from tests.webhooks.test_fuzz import places, replaced

JSON = {"Content-Type": "application/json"}
FACTS = Facts(
    backends=in_use("kai-scheduler", "volcano"),
    topology_aware=True,
    operator_user="system:serviceaccount:grove-system:grove-operator",
)


def why_bad(status: int, text: str) -> str:
    """What is wrong with a response; empty if it is well-formed."""
    if status != 200:
        return "" if 400 <= status < 500 and len(text.splitlines()) == 1 else f"HTTP {status}: {text[:300]}"
    answer = json.loads(text)
    response = answer["response"]
    if (answer["apiVersion"], answer["kind"]) != ("admission.k8s.io/v1", "AdmissionReview"):
        return "another kind of answer"
    if response["allowed"]:
        return ""
    message = response["status"]["message"]
    if response["status"]["code"] not in (400, 403) or not message or len(message) > 20_000:
        return f"denied with {response['status']}"[:500]
    return "" if len(message.splitlines()) == 1 else f"in many lines: {message!r}"[:500]


async def test_every_review_is_answered() -> None:
    async with serving(reviewer(FACTS)) as (host, port):
        url = f"http://{host}:{port}"
        with capture_logs() as logs:
            async with aiohttp.ClientSession() as session, asyncio.timeout(800):
                for seed, chance in seeds(1_000):
                    path, body = Mutator(chance).review()
                    async with session.post(url + path, data=body, headers=JSON) as reply:
                        assert not why_bad(reply.status, await reply.text()), (seed, path)
                async with session.get(url + server.HEALTH) as reply:
                    assert reply.status == 200
    errors = [line for line in logs if line["log_level"] in ("warning", "error", "critical")]
    assert {line["event"] for line in errors} <= {"refused"}
    assert len(errors) <= len(Refusal), "one line for each kind, however many requests are refused"


WORST: list[Any] = [
    *(
        None,
        True,
        -1,
        0.5,
        2**31,
        10**25,
        "",
        "a\nb",
        "x" * 5_000,
        [],
        {},
        [None],
        {"": None},
        [[]],
        [{}] * 3,
    ),
    *("1e999999999", "1e-999999999", "9" * 300 + "h", "9" * 300 + "Gi", "99999999999999h", "2147483648"),
]


async def test_every_value_at_every_path_is_answered() -> None:
    """One object of each kind, with each of the worst values at each path."""
    by = reviewer(FACTS)
    for body in {body["kind"] + body["apiVersion"]: body for body in manifests()}.values():
        plural, paths = PATHS[body["kind"]]
        group, _, version = body["apiVersion"].partition("/")
        resource = {"group": group, "version": version, "resource": plural}
        for path_in_object, value in product(places(body), WORST):
            spoiled = replaced(body, path_in_object, value)
            for path, operation in product(paths, ("CREATE", "UPDATE")):
                sent = msgspec.json.encode(review(operation, spoiled, body, resource))
                bad = why_bad(200, (await by.answer(path, sent)).decode())
                assert not bad, (path, path_in_object, value)


def test_manifests_cover_every_kind_and_none_is_too_deep() -> None:
    assert {body["kind"] for body in manifests()} == set(PATHS)
    assert {body["apiVersion"] for body in manifests()} >= {"nvidia.com/v1alpha1", "nvidia.com/v1beta1"}
    assert not any(too_deep(json.dumps(body).encode()) for body in manifests())


def test_seed_reproduces_review() -> None:
    for seed in range(20):
        assert Mutator(Random(seed)).review() == Mutator(Random(seed)).review()
