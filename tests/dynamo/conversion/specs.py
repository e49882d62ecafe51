"""Strategies for specs of DynamoGraphDeployments: what users write, and anything that a schema admits."""

from __future__ import annotations

from hypothesis import strategies as st

NAMES = st.sampled_from(["main", "Frontend", "decode", "prefill", "Worker", "sidecar-frontend", "a"])
WORDS = st.sampled_from(["", "worker", "decode", "prefill", "frontend", "main", "0", "8Gi", "x"])
SCALARS = st.none() | st.booleans() | st.integers(-1, 3) | WORDS
VARIABLES = st.lists(st.fixed_dictionaries({"name": WORDS}, optional={"value": SCALARS}), max_size=3)
AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "gpu", "gpuType", "custom", "nvidia.com/gpu", "rdma/ib"]),
    SCALARS | st.dictionaries(WORDS, SCALARS, max_size=2),
    max_size=4,
)
RESOURCES = st.fixed_dictionaries(
    {}, optional={"requests": AMOUNTS, "limits": AMOUNTS, "claims": st.lists(SCALARS, max_size=2)}
)
_FIELDS = st.sampled_from(
    [
        *(
            "name",
            "type",
            "componentType",
            "subComponentType",
            "replicas",
            "resources",
            "env",
            "envs",
            "spec",
        ),
        *(
            "envFrom",
            "envFromSecret",
            "extraPodSpec",
            "extraPodMetadata",
            "podTemplate",
            "metadata",
            "labels",
        ),
        *(
            "mainContainer",
            "containers",
            "volumeMounts",
            "sharedMemory",
            "sharedMemorySize",
            "scalingAdapter",
        ),
        *("frontendSidecar", "compilationCache", "services", "components", "pvcs", "topologyConstraint"),
        *(
            "clusterTopologyName",
            "topologyProfile",
            "enabled",
            "size",
            "disabled",
            "image",
            "args",
            "unknown",
        ),
        *(
            "livenessProbe",
            "httpGet",
            "componentName",
            "componentNames",
            "useAsCompilationCache",
            "mountPoint",
        ),
    ]
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_FIELDS, inner, max_size=4),
    max_leaves=12,
)


def _container(name: st.SearchStrategy[str]) -> st.SearchStrategy[dict]:
    fields = {
        "image": WORDS,
        "args": st.lists(WORDS, max_size=2),
        "env": VARIABLES,
        "envFrom": st.just([{"secretRef": {"name": "x"}}]) | ANYTHING,
        "resources": RESOURCES | ANYTHING,
        "volumeMounts": st.lists(st.fixed_dictionaries({"name": WORDS, "mountPath": WORDS}), max_size=2),
        "livenessProbe": st.just({"exec": {"command": ["x"]}}) | ANYTHING,
    }
    return st.fixed_dictionaries({"name": name}, optional=fields)


_COMMON = {
    "replicas": st.integers(0, 3),
    "multinode": st.just({"nodeCount": 2}),
    "topologyConstraint": st.just({"packDomain": "rack"}),
    "unknown": ANYTHING,
}
COMPONENT = st.fixed_dictionaries(
    {"name": NAMES},
    optional={
        **_COMMON,
        "type": WORDS,
        "podTemplate": st.fixed_dictionaries(
            {},
            optional={
                "metadata": st.fixed_dictionaries({}, optional={"labels": st.just({"a": "b"})}),
                "spec": st.fixed_dictionaries(
                    {},
                    optional={"containers": st.lists(_container(NAMES), max_size=3), "hostNetwork": SCALARS},
                ),
            },
        ),
        "sharedMemorySize": WORDS | st.integers(0, 1),
        "compilationCache": st.fixed_dictionaries({}, optional={"pvcName": WORDS, "mountPath": WORDS}),
        "scalingAdapter": st.just({}),
        "frontendSidecar": NAMES,
    },
)
SERVICE = st.fixed_dictionaries(
    {},
    optional={
        **_COMMON,
        "serviceName": WORDS,
        "componentType": WORDS,
        "subComponentType": WORDS,
        "resources": RESOURCES,
        "envs": VARIABLES,
        "envFromSecret": WORDS,
        "extraPodSpec": st.fixed_dictionaries(
            {},
            optional={
                "mainContainer": _container(NAMES) | ANYTHING,
                "containers": st.lists(_container(NAMES), max_size=2),
                "volumes": st.just([{"name": "v"}]),
            },
        ),
        "extraPodMetadata": st.fixed_dictionaries({}, optional={"labels": st.just({"a": "b"})}),
        "labels": st.just({"team": "a"}),
        "annotations": st.just({"note": "b"}),
        "readinessProbe": st.just({"httpGet": {"port": 1}}),
        "volumeMounts": st.lists(
            st.fixed_dictionaries(
                {"name": WORDS}, optional={"mountPoint": WORDS, "useAsCompilationCache": st.booleans()}
            ),
            max_size=3,
        ),
        "sharedMemory": st.fixed_dictionaries({}, optional={"disabled": st.booleans(), "size": WORDS}),
        "scalingAdapter": st.fixed_dictionaries({}, optional={"enabled": st.booleans()}),
        "frontendSidecar": st.fixed_dictionaries(
            {}, optional={"image": WORDS, "args": st.lists(WORDS), "envFromSecret": WORDS, "envs": VARIABLES}
        ),
        "ingress": st.just({"enabled": False}),
    },
)
_TOPOLOGY = st.dictionaries(
    st.sampled_from(["clusterTopologyName", "topologyProfile", "topologyName", "packDomain"]), WORDS
)
_REST = {"labels": st.just({"a": "b"}), "topologyConstraint": _TOPOLOGY, "unknown": ANYTHING}
COMPONENTS = st.lists(COMPONENT, max_size=3)
SERVICES = st.dictionaries(NAMES, SERVICE, max_size=3)
BETA_SPEC = st.fixed_dictionaries({}, optional={**_REST, "components": COMPONENTS, "env": VARIABLES})
ALPHA_SPEC = st.fixed_dictionaries(
    {},
    optional={
        **_REST,
        "services": SERVICES,
        "envs": VARIABLES,
        "pvcs": st.just([{"name": "cache", "create": True}]),
    },
)
_WILD = st.dictionaries(_FIELDS, ANYTHING, max_size=5)
WILD_ALPHA = st.builds(
    lambda spec, services: {**spec, "services": services}, _WILD, st.dictionaries(NAMES, ANYTHING) | ANYTHING
)
WILD_BETA = st.builds(
    lambda spec, found: {**spec, "components": found}, _WILD, st.lists(ANYTHING | COMPONENT) | ANYTHING
)
ENTRY = st.fixed_dictionaries(
    {},
    optional={
        "replicas": st.integers(0, 2),
        "componentName": WORDS,
        "componentNames": st.lists(WORDS, max_size=2),
    },
)
STATUS_ENTRIES = st.dictionaries(NAMES, ENTRY | ANYTHING, max_size=3)
