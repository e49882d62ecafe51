"""The objects that the API requires of any operator for one replica of a set of one clique.

Labels, selectors, variables and host names are the contract's: schedulers compare the labels of each pod with
the selectors of all Services of its namespace, and endpoint controllers do the opposite, so that their number
decides how long a start takes.
"""

from __future__ import annotations

from typing import Any

from grove.api.configuration.types import DEFAULT_SCHEDULER
from grove.api.naming import labels, names
from grove.api.naming.well_known import Env
from grove.api.types.kind import Kind
from grove.api.types.podclique import PodClique
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang

Body = dict[str, Any]
CLIQUE = "worker"
TEMPLATE_HASH = "5b9c8d7f6b9c8d7f6b9"
CONTAINER = {"name": CLIQUE, "image": "model", "resources": {"requests": {"memory": "80Mi"}}}
POD_SPEC = {"containers": [CONTAINER]}


def podcliqueset(set_name: str, pods: int) -> Body:
    """A set of one replica."""
    clique = {"name": CLIQUE, "spec": _clique_spec(pods)}
    spec = {"replicas": 1, "template": {"cliques": [clique]}}
    return _grove(PodCliqueSet.KIND, {"name": set_name}, spec)


def service(set_name: str, replica: int) -> Body:
    """The headless Service of a replica."""
    name = names.service(set_name, replica)
    own = labels.for_replica(set_name, replica, name, labels.ComponentLabel.HEADLESS_SERVICE)
    spec = {
        "clusterIP": "None",
        "selector": labels.pods_of_replica(set_name, replica),
        "publishNotReadyAddresses": True,
    }
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "labels": own}, "spec": spec}


def podclique(set_name: str, replica: int, pods: int) -> Body:
    """The PodClique of a replica."""
    metadata = {"name": names.clique(set_name, replica, CLIQUE), "labels": _clique_labels(set_name, replica)}
    return _grove(PodClique.KIND, metadata, _clique_spec(pods))


def podgang(set_name: str, replica: int, namespace: str, pods: int) -> Body:
    """The PodGang of a replica, which names its pods."""
    clique = names.clique(set_name, replica, CLIQUE)
    references = [{"namespace": namespace, "name": _pod_name(clique, number)} for number in range(pods)]
    group = {"name": clique, "minReplicas": pods, "podReferences": references}
    own = labels.for_gang(set_name, replica, DEFAULT_SCHEDULER)
    metadata = {"name": names.base_gang(set_name, replica), "labels": own}
    return _grove(PodGang.KIND, metadata, {"podgroups": [group]})


def pod(set_name: str, replica: int, namespace: str, number: int, clique_uid: str) -> Body:
    """A pod of a replica, owned by its PodClique."""
    clique = names.clique(set_name, replica, CLIQUE)
    kind = PodClique.KIND
    owner = {"apiVersion": kind.api_version, "kind": kind.name, "name": clique, "uid": clique_uid}
    metadata = {
        "name": _pod_name(clique, number),
        "labels": labels.for_pod(_clique_labels(set_name, replica), clique, number),
        "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
    }
    index = {"fieldRef": {"fieldPath": f"metadata.labels['{labels.POD_INDEX}']"}}
    variables = [
        {"name": Env.SET_NAME.value, "value": set_name},
        {"name": Env.SET_INDEX.value, "value": str(replica)},
        {"name": Env.CLIQUE_NAME.value, "value": clique},
        {"name": Env.HEADLESS_SERVICE.value, "value": names.service_host(set_name, replica, namespace)},
        {"name": Env.POD_INDEX.value, "valueFrom": index},
    ]
    spec = {
        "containers": [{**CONTAINER, "env": variables}],
        "schedulerName": DEFAULT_SCHEDULER,
        "hostname": names.pod_host(clique, number),
        "subdomain": names.service(set_name, replica),
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _grove(kind: Kind, metadata: Body, spec: Body) -> Body:
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, "spec": spec}


def _clique_labels(set_name: str, replica: int) -> labels.Labels:
    clique, gang = names.clique(set_name, replica, CLIQUE), names.base_gang(set_name, replica)
    return labels.for_clique(set_name, replica, clique, CLIQUE, gang, TEMPLATE_HASH)


def _clique_spec(pods: int) -> Body:
    return {"roleName": CLIQUE, "replicas": pods, "minAvailable": pods, "podSpec": POD_SPEC}


def _pod_name(clique: str, number: int) -> str:
    return f"{clique}-{number:05}"
