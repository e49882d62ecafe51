"""Field paths, error messages and spec fragments that several tables of the rule tests share."""

from __future__ import annotations

T = "spec.template"
C = f"{T}.cliques[0]"
G = f"{T}.podCliqueScalingGroups[0]"
EXPLICIT = {f"{T}.cliqueStartupType": "CliqueStartupTypeExplicit"}
REQUEST = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}}
CLAIMS = [{"name": "shared", "templateSpec": REQUEST}]
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
WORD = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'my.name', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
NO_DOTS = "must not contain dots: it becomes part of the host names of pods"


def scaling(fewest=2, most=4):
    return {"minReplicas": fewest, "maxReplicas": most}


def together(length):
    return (
        f"the names of set, scaling group and clique have {length} characters together, at most 45 are "
        "allowed: shorten one of them"
    )


def sharing(**fields):
    return [{"name": "shared", "scope": "AllReplicas", **fields}]


KAI = {f"{T}.cliques[{index}].spec.podSpec.schedulerName": "kai-scheduler" for index in range(3)}
VOLCANO = dict.fromkeys(KAI, "volcano")
LPX = dict.fromkeys(KAI, "lpx-scheduler")
CONSTRAINED = {f"{T}.topologyConstraint": {"topologyName": "h100", "packDomain": "rack"}}
QUEUE = "kai.scheduler/queue"
ON_KAI = {**KAI, "metadata.labels": {QUEUE: "team"}}
"""A scheduler that supports every topology constraint."""
