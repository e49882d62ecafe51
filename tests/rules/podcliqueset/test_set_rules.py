"""One row for each rule about a set, its cliques and their startup order: a change that breaks it, and the
exact errors."""

from __future__ import annotations

import pytest

from grove.rules.podcliqueset import validation
from tests.rules.builders import FACTS, GONE, changed, workload
from tests.rules.messages import EXPLICIT, NO_DOTS, SUBDOMAIN, WORD, C, T, scaling, together

METADATA = [
    ({"metadata.name": "App"}, [f'metadata.name: Invalid value: "App": {SUBDOMAIN}']),
    ({"metadata.name": "a.b"}, [f'metadata.name: Invalid value: "a.b": {NO_DOTS}']),
    (
        {"metadata.name": "a" * 254, f"{T}.cliques": [], f"{T}.podCliqueScalingGroups": []},
        [
            f'metadata.name: Invalid value: "{"a" * 199}...: must be no more than 253 characters',
            f"{T}.cliques: Required value: at least one PodClique must be defined",
        ],
    ),
    (
        {"metadata.labels": {"ok": "a" * 64}},
        [f'metadata.labels: Invalid value: "{"a" * 64}": must be no more than 63 characters'],
    ),
    (
        {"metadata.labels": {"a" * 318: "ok"}},
        [f'metadata.labels: Invalid value: "{"a" * 199}...: must be no more than 317 characters'],
    ),
    ({"metadata.name": GONE}, ["metadata.name: Required value: name or generateName is required"]),
    (
        {"metadata.name": GONE, "metadata.generateName": "App-"},
        [f'metadata.generateName: Invalid value: "App-": {SUBDOMAIN}'],
    ),
    (
        {"metadata.labels": {"a b": "ok"}},
        [f'metadata.labels: Invalid value: "a b": name part {WORD}'],
    ),
    (
        {"metadata.labels": {"ok": "no way"}},
        [f'metadata.labels: Invalid value: "no way": a valid label {WORD}'],
    ),
    (
        {"metadata.annotations": {"/a": ""}},
        ['metadata.annotations: Invalid value: "/a": prefix part must be non-empty'],
    ),
    (
        {"metadata.annotations": {"a": "x" * 256 * 1024}},
        ["metadata.annotations: Too long: may not be more than 262144 bytes"],
    ),
]

SET = [
    ({"spec.replicas": -1}, ["spec.replicas: Invalid value: -1: must be non-negative"]),
    (
        {f"{T}.cliqueStartupType": "Random"},
        [
            f'{T}.cliqueStartupType: Invalid value: "Random": can only be one of CliqueStartupTypeAnyOrder, '
            "CliqueStartupTypeInOrder, CliqueStartupTypeExplicit"
        ],
    ),
    ({f"{T}.terminationDelay": GONE}, [f"{T}.terminationDelay: Required value"]),
    (
        {f"{T}.terminationDelay": "0s"},
        [f'{T}.terminationDelay: Invalid value: "0s": must be greater than 0'],
    ),
    (
        {f"{T}.terminationDelay": "-1h"},
        [f'{T}.terminationDelay: Invalid value: "-1h": must be greater than 0'],
    ),
    (
        {f"{T}.terminationDelay": "soon"},
        [f'{T}.terminationDelay: Invalid value: "soon": must be a duration such as "4h0m0s" or "90s"'],
    ),
    (
        {f"{T}.cliques": [], f"{T}.podCliqueScalingGroups": []},
        [f"{T}.cliques: Required value: at least one PodClique must be defined"],
    ),
]

NO_SPREAD = "must not be set: use a topologyConstraint of the clique"
CLIQUES = [
    ({f"{C}.name": ""}, [f"{C}.name: Required value"]),
    ({f"{C}.name": "Router"}, [f'{C}.name: Invalid value: "Router": {SUBDOMAIN}']),
    ({f"{C}.name": "rou.ter"}, [f'{C}.name: Invalid value: "rou.ter": {NO_DOTS}']),
    (
        {f"{C}.name": "r" * 43},
        [
            f'{C}.name: Invalid value: "{"r" * 43}": {together(46)}',
            f'metadata.name: Invalid value: "app": {together(46)}',
        ],
    ),
    (
        {"metadata.name": GONE, "metadata.generateName": "app-", f"{C}.name": "r" * 37},
        [
            f'{C}.name: Invalid value: "{"r" * 37}": {together(46)}',
            f'metadata.name: Invalid value: "app-xxxxx": {together(46)}',
        ],
    ),
    ({f"{C}.labels": {"ok": "-"}}, [f'{C}.labels: Invalid value: "-": a valid label {WORD}']),
    (
        {f"{C}.labels": {"a" * 64: ""}},
        [f'{C}.labels: Invalid value: "{"a" * 64}": name part must be no more than 63 characters'],
    ),
    (
        {f"{C}.annotations": {"example.com/": ""}},
        [f'{C}.annotations: Invalid value: "example.com/": name part must be non-empty'],
    ),
    (
        {f"{C}.spec.replicas": 0, f"{C}.spec.minAvailable": 1},
        [
            f"{C}.spec.replicas: Invalid value: 0: must be greater than 0",
            f"{C}.spec.minAvailable: Invalid value: 1: minAvailable must not be greater than replicas",
        ],
    ),
    ({f"{C}.spec.minAvailable": GONE}, [f"{C}.spec.minAvailable: Required value"]),
    (
        {f"{C}.spec.minAvailable": 0},
        [f"{C}.spec.minAvailable: Invalid value: 0: must be greater than 0"],
    ),
    (
        {f"{C}.spec.minAvailable": 3},
        [f"{C}.spec.minAvailable: Invalid value: 3: minAvailable must not be greater than replicas"],
    ),
    (
        {f"{C}.spec.autoScalingConfig": {"maxReplicas": 4}},
        [f"{C}.spec.autoScalingConfig.minReplicas: Required value"],
    ),
    (
        {f"{C}.spec.autoScalingConfig": scaling(fewest=1)},
        [
            f"{C}.spec.autoScalingConfig.minReplicas: Invalid value: 1: must be 0, or greater than or equal "
            "to minAvailable"
        ],
    ),
    (
        {f"{C}.spec.autoScalingConfig": scaling(fewest=6, most=5)},
        [
            f"{C}.spec.autoScalingConfig.maxReplicas: Invalid value: 5: must be greater than or equal to "
            "minReplicas"
        ],
    ),
    (
        {f"{C}.spec.replicas": 5, f"{C}.spec.autoScalingConfig": scaling()},
        [
            f"{C}.spec.autoScalingConfig.maxReplicas: Invalid value: 4: must be greater than or equal to "
            "replicas"
        ],
    ),
    (
        {f"{C}.rollingUpdate": {"maxUnavailable": 0, "progressDeadline": "later"}},
        [
            f"{C}.rollingUpdate.maxUnavailable: Invalid value: 0: must be greater than 0",
            f'{C}.rollingUpdate.progressDeadline: Invalid value: "later": must be a duration such as '
            '"4h0m0s" or "90s"',
        ],
    ),
    (
        {f"{C}.spec.podSpec.topologySpreadConstraints": [{}, {}]},
        [f'{C}.spec.podSpec.spec.topologySpreadConstraints: Invalid value: "(2)": {NO_SPREAD}'],
    ),
    (
        {f"{C}.spec.podSpec.nodeName": "node-1"},
        [
            f'{C}.spec.podSpec.spec.nodeName: Invalid value: "node-1": must not be set: use nodeSelector or '
            "node affinity"
        ],
    ),
    (
        {f"{C}.spec.podSpec.containers[0].env": [{"name": "OK"}, {"name": ""}, {"name": "A=B"}]},
        [
            f"{C}.spec.podSpec.spec.containers[0].env[1].name: Required value",
            f'{C}.spec.podSpec.spec.containers[0].env[2].name: Invalid value: "A=B": a valid environment '
            "variable name must consist only of printable ASCII characters other than '='",
        ],
    ),
    (
        {f"{C}.spec.podSpec.initContainers": [{"image": "app:1", "env": [{"name": "A"}, {"name": "A"}]}]},
        [f'{C}.spec.podSpec.spec.initContainers[0].env: Duplicate value: "A"'],
    ),
    (
        {
            f"{C}.spec.podSpec.containers": [{"name": "a"}, {"name": "b", "image": " "}],
            f"{C}.spec.podSpec.initContainers": [{"name": "c", "image": ""}],
        },
        [
            f"{C}.spec.podSpec.spec.{place}.image: Required value: pods cannot be created without it"
            for place in ("containers[0]", "containers[1]", "initContainers[0]")
        ],
    ),
    (
        {f"{C}.name": "decode", f"{T}.podCliqueScalingGroups": []},
        [f'{T}.cliques.name: Duplicate value: "decode"'],
    ),
    ({f"{C}.spec.roleName": "decode"}, [f'{T}.cliques.roleName: Duplicate value: "decode"']),
]

ORDER = [
    (
        {**EXPLICIT, f"{C}.spec.startsAfter": [""]},
        [f'{C}.spec.startsAfter: Invalid value: "": must not contain an empty name'],
    ),
    (
        {**EXPLICIT, f"{C}.spec.startsAfter": ["router"]},
        [f'{C}.spec.startsAfter: Invalid value: "router": a PodClique cannot start after itself'],
    ),
    (
        {**EXPLICIT, f"{C}.spec.startsAfter": ["decode", "decode"]},
        [f'{C}.spec.startsAfter: Duplicate value: "decode"'],
    ),
    (
        {**EXPLICIT, f"{C}.spec.startsAfter": ["missing", "decode"]},
        [
            f'{T}.cliques.startsAfter: Invalid value: ["missing"]: unknown PodClique names found: use names '
            "of spec.template.cliques"
        ],
    ),
    (
        {
            **EXPLICIT,
            f"{C}.spec.startsAfter": ["prefill"],
            f"{T}.cliques[1].spec.startsAfter": ["decode"],
            f"{T}.cliques[2].spec.startsAfter": ["router"],
        },
        [
            f'{T}.cliques: Invalid value: ["router","prefill","decode"]: circular dependencies: '
            "router -> prefill -> decode -> router"
        ],
    ),
]

PARSED = "is not a quantity: write a number with a unit such as m, k, M, Ki or Mi"
POD, PATH = f"{C}.spec.podSpec", f"{C}.spec.podSpec.spec"
AMOUNTS = [
    (
        {f"{POD}.containers[0].resources": {"limits": {"nvidia.com/gpu": "1e1.5"}}},
        [
            f"{PATH}.containers[0].resources.limits[nvidia.com/gpu]: "
            f"Invalid value: \"1e1.5\": '1e1.5' {PARSED}"
        ],
    ),
    (
        {f"{POD}.containers[0].resources": {"requests": {"cpu": "1e999999"}}},
        [
            f"{PATH}.containers[0].resources.requests[cpu]: Invalid value: \"1e999999\": '1e999999' is not a "
            "quantity that can be computed: write a smaller exponent"
        ],
    ),
    (
        {f"{POD}.initContainers": [{"name": "i", "image": "i", "resources": {"limits": {"cpu": [1]}}}]},
        [f"{PATH}.initContainers[0].resources.limits[cpu]: Invalid value: [1]: [1] {PARSED}"],
    ),
    (
        {f"{POD}.resources": {"limits": {"cpu": "x"}}},
        [f"{PATH}.resources.limits[cpu]: Invalid value: \"x\": 'x' {PARSED}"],
    ),
    (
        {f"{POD}.overhead": {"cpu": "x"}},
        [f"{PATH}.overhead[cpu]: Invalid value: \"x\": 'x' {PARSED}"],
    ),
    (
        {f"{POD}.containers[0].resources": 5},
        [f"{POD}.containers[0].resources: Invalid value: 5: must be an object"],
    ),
    (
        {f"{POD}.containers[0].resources": {"limits": "a"}},
        [f'{POD}.containers[0].resources.limits: Invalid value: "a": must be an object'],
    ),
]


@pytest.mark.parametrize(
    ("changes", "errors"),
    METADATA + SET + CLIQUES + ORDER + AMOUNTS,
    ids=lambda value: next(iter(value), "")[:60],
)
def test_broken_rule_is_refused(changes, errors):
    verdict = validation.on_create(changed(workload(), changes), FACTS)
    assert list(map(str, verdict.errors)) == errors
    assert not verdict.allowed
