"""Generates the schema of the chart's values: `config` from the operator's types, the rest as written here.

The schema is strict, so that a misspelled key is rejected instead of ignored. Beyond values.yaml it accepts
what a parent chart passes on (`global`, the condition `enabled`) and keys of values for upstream's chart.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any, get_args, get_origin

from grove.api.configuration.default_scheduler import DefaultSchedulerConfig
from grove.api.configuration.types import DEFAULT_SCHEDULER, OperatorConfiguration
from grove.api.crds import type_properties
from grove.api.wire import Wire

Schema = dict[str, Any]

_PLAIN: dict[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    object: {},
}
_CHART_DECIDES = ("apiVersion", "kind", "namespaces")
_NAMESPACE = {"type": "string", "pattern": "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"}
_PORT = {"type": "integer", "minimum": 1, "maximum": 65535}
_WEBHOOKS = ("podCliqueSetValidation", "podCliqueSetDefaulting", "clusterTopologyValidation", "authorizer")
_UNUSED = "Accepted for compatibility with upstream's values and not used."


def page() -> str:
    """The content of the file."""
    return json.dumps(values(), indent=2) + "\n"


def values() -> Schema:
    """The schema of all values."""
    schema = _closed(
        replicaCount={"type": "integer", "minimum": 0},
        admission=_closed(
            separate=_YES_NO,
            replicaCount={"type": "integer", "minimum": 0},
            serviceAccount=_closed(annotations=_TEXTS),
            resources=_OBJECT,
        ),
        dashboard=_dashboard(),
        namespaces={"type": "array", "items": _NAMESPACE, "uniqueItems": True},
        image=_closed(**_IMAGE, pullPolicy={"enum": ["Always", "IfNotPresent", "Never"]}),
        initContainer=_closed(image=_closed(**_IMAGE)),
        imagePullSecrets=_OBJECTS,
        commonLabels=_TEXTS,
        commonAnnotations=_TEXTS,
        serviceAccount=_closed(
            name={"type": "string", "minLength": 1}, annotations=_TEXTS, labels=_TEXTS, automount=_YES_NO
        ),
        rbac=_closed(create=_YES_NO, aggregate=_YES_NO),
        podLabels=_TEXTS,
        podAnnotations=_TEXTS,
        podSecurityContext=_OBJECT,
        securityContext=_OBJECT,
        resources=_OBJECT,
        nodeSelector=_TEXTS,
        tolerations=_OBJECTS,
        affinity=_OBJECT,
        topologySpreadConstraints={**_OBJECTS, "type": ["array", "null"]},
        terminationGracePeriodSeconds={"type": "integer", "minimum": 5},
        priorityClassName=_TEXT,
        priorityClass=_closed(enabled=_YES_NO, name=_TEXT, value={"type": "integer", "maximum": 1000000000}),
        allowLocalCluster=_YES_NO,
        podDisruptionBudget=_closed(enabled=_YES_NO, maxUnavailable={"type": ["integer", "string"]}),
        deployment=_closed(annotations=_TEXTS, labels=_TEXTS, env=_OBJECTS),
        service=_closed(
            name={"const": "grove-operator"},
            type=_SERVICE_TYPE,
            clusterIP=_TEXT,
            annotations=_TEXTS,
            labels=_TEXTS,
            port={**_PORT, "description": _UNUSED},
        ),
        networkPolicy=_closed(
            enabled=_YES_NO,
            webhooksFrom=_OBJECTS,
            metricsFrom=_OBJECTS,
            dashboardFrom=_OBJECTS,
            egress=_OBJECTS,
        ),
        metrics=_closed(
            serviceMonitor=_closed(
                enabled=_YES_NO, name=_TEXT, labels=_TEXTS, interval=_TEXT, scrapeTimeout=_TEXT
            )
        ),
        webhooks=_closed(
            enabled=_YES_NO,
            caBundle={"type": "string", "pattern": "^[A-Za-z0-9+/=]*$"},
            labels=_TEXTS,
            annotations=_TEXTS,
            **{f"{name}Webhook": _closed(labels=_TEXTS, annotations=_TEXTS) for name in _WEBHOOKS},
        ),
        jobs=_closed(podAnnotations=_TEXTS),
        crdInstaller=_closed(enabled=_YES_NO, image={**_OBJECT, "description": _UNUSED}),
        uninstaller=_closed(enabled=_YES_NO, additionalRules={"type": "array", "items": _RULE}),
        config=_configuration(),
        **_upstream(),
        **{"global": _OBJECT, "enabled": _YES_NO},
    )
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Values of Grove's chart",
        **schema,
    }


def _dashboard() -> Schema:
    return _closed(
        enabled=_YES_NO,
        serviceAccount=_closed(annotations=_TEXTS),
        tls=_closed(secretName=_TEXT),
        service=_closed(type=_SERVICE_TYPE, annotations=_TEXTS),
        ingress=_closed(enabled=_YES_NO, className=_TEXT, host=_TEXT, tls=_OBJECTS, annotations=_TEXTS),
        resources=_OBJECT,
    )


def _upstream() -> dict[str, Schema]:
    """Keys of upstream's values only. Names that are fixed here can be given, but not changed."""
    fixed = {"clusterRole": "grove:system:grove-operator", "leaseRole": "grove:system:grove-operator-lease"}
    return {
        "configMap": _closed(labels=_TEXTS),
        "serviceMonitor": _closed(enable=_YES_NO, name=_TEXT, labels=_TEXTS),
        "webhookServerSecret": {**_closed(enabled=_YES_NO, labels=_TEXTS), "description": _UNUSED},
        **{
            f"{key}{kind}": _closed(name={"const": name}, labels=_TEXTS)
            for key, name in fixed.items()
            for kind in ("", "Binding")
        },
    }


def _configuration() -> Schema:
    """The schema of `config`. Ports must be fixed, since the chart also writes them into other objects."""
    schema = _struct(OperatorConfiguration)
    for key in _CHART_DECIDES:
        del schema["properties"][key]
    servers = schema["properties"]["server"]["properties"]
    for server in servers.values():
        server["properties"]["port"] |= _PORT
    servers["healthProbes"]["properties"]["enable"] = _YES_NO
    # Helm reads `packDomains: off` as false.
    schema["properties"]["network"]["properties"]["packDomains"]["enum"].append(False)
    servers["webhooks"]["properties"]["certProvisionMode"]["enum"].append("")
    schema["properties"]["scheduler"]["properties"]["profiles"]["items"] |= {
        "if": {"properties": {"name": {"const": DEFAULT_SCHEDULER}}, "required": ["name"]},
        "then": {"properties": {"config": _default_scheduler()}},
    }
    return schema


def _default_scheduler() -> Schema:
    """The schema of `config` of the default scheduler. Helm reads `placement: Off` as false. Without the name
    of its Lease, the Role of the chart would apply to all Leases."""
    schema = _struct(DefaultSchedulerConfig)
    schema["properties"]["placement"]["enum"].append(False)
    for part in schema["properties"]["schedulerLease"]["properties"].values():
        part["minLength"] = 1
    return schema


def _struct(kind: type[Wire]) -> Schema:
    schema = _closed(
        **{
            field.name: _field(field.shape.type, field.description)
            for field in type_properties.properties(kind)
        }
    )
    required = [
        field.name for field in type_properties.properties(kind) if field.required and field.name == "name"
    ]
    return schema | {"required": required} if required else schema


def _field(kind: Any, words: str) -> Schema:
    return {**_type(kind), "description": words} if words else _type(kind)


def _type(kind: Any) -> Schema:
    if kind in _PLAIN:
        return dict(_PLAIN[kind])
    if isinstance(kind, type) and issubclass(kind, Wire):
        return _struct(kind)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return {"enum": list(kind)}
    inner = [type_properties.shape(each).type for each in get_args(kind) if each is not ...]
    if get_origin(kind) is tuple:
        return {"type": "array", "items": _type(inner[0])}
    return {"type": "object", "additionalProperties": _type(inner[1])}


def _closed(**properties: Schema) -> Schema:
    return {"type": "object", "additionalProperties": False, "properties": properties}


_TEXT: Schema = {"type": "string"}
_IMAGE: dict[str, Schema] = {
    "repository": {"type": "string", "minLength": 1},
    "tag": _TEXT,
    "digest": {"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"},
}
_SERVICE_TYPE: Schema = {"enum": ["ClusterIP", "NodePort", "LoadBalancer"]}
_YES_NO: Schema = {"type": "boolean"}
_OBJECT: Schema = {"type": "object"}
_OBJECTS: Schema = {"type": "array", "items": {"type": "object"}}
_NAMES: Schema = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_RULE: Schema = {
    **_closed(apiGroups=_NAMES, resources=_NAMES, resourceNames=_NAMES, verbs=_NAMES),
    "required": ["apiGroups", "resources", "verbs"],
}
_TEXTS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
