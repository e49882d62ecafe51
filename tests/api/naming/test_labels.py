"""The labels of each kind of object. Clients and schedulers select by them."""

from __future__ import annotations

from grove.api.naming import labels, names
from grove.api.naming.labels import ComponentLabel

COMMON = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "inference"}
ROUTER = labels.for_clique(
    "inference", 0, name="inference-0-router", template="router", gang="inference-0", template_hash="h1"
)
LEADER = labels.for_member_clique(
    labels.for_clique(
        "inference",
        0,
        name="inference-0-prefill-3-leader",
        template="leader",
        gang="inference-0-prefill-1",
        template_hash="h2",
    ),
    group="inference-0-prefill",
    group_replica=3,
    base_gang="inference-0",
)


def test_labels_of_standalone_clique():
    assert ROUTER == COMMON | {
        "app.kubernetes.io/name": "inference-0-router",
        "app.kubernetes.io/component": "pcs-podclique",
        "grove.io/podcliqueset-replica-index": "0",
        "grove.io/clique": "router",
        "grove.io/podgang": "inference-0",
        "grove.io/pod-template-hash": "h1",
    }


def test_labels_of_scaled_gang_clique():
    assert LEADER == COMMON | {
        "app.kubernetes.io/name": "inference-0-prefill-3-leader",
        "app.kubernetes.io/component": "pcsg-podclique",
        "grove.io/podcliqueset-replica-index": "0",
        "grove.io/podcliquescalinggroup": "inference-0-prefill",
        "grove.io/podcliquescalinggroup-replica-index": "3",
        "grove.io/clique": "leader",
        "grove.io/podgang": "inference-0-prefill-1",
        "grove.io/base-podgang": "inference-0",
        "grove.io/pod-template-hash": "h2",
    }


def test_base_gang_clique_has_no_base_podgang_label():
    member = labels.for_member_clique(ROUTER, group="inference-0-prefill", group_replica=0)
    assert "grove.io/base-podgang" not in member


def test_pod_has_labels_of_its_clique_and_its_index():
    pod = labels.for_pod({"team": "search"} | ROUTER, "inference-0-router", 7)
    assert pod == {"team": "search"} | ROUTER | {
        "grove.io/podclique": "inference-0-router",
        "grove.io/podclique-pod-index": "7",
    }


def test_gang_has_replica_and_scheduler_labels():
    assert labels.for_gang("inference", 2, "kai-scheduler") == COMMON | {
        "app.kubernetes.io/component": "podgang",
        "grove.io/podcliqueset-replica-index": "2",
        "grove.io/scheduler-name": "kai-scheduler",
    }


def test_role_name_label_has_no_colons():
    role = labels.named("inference", names.role("inference"), ComponentLabel.ROLE)
    assert role["app.kubernetes.io/name"] == "grove.io-pcs-inference"


def test_selectors_are_sorted():
    assert labels.selector(labels.pods_of_clique("inference", "inference-0-router")) == (
        "app.kubernetes.io/managed-by=grove-operator,app.kubernetes.io/part-of=inference,"
        "grove.io/podclique=inference-0-router"
    )
    assert labels.selector(labels.pods_of_group("inference", "inference-0-prefill")) == (
        "app.kubernetes.io/managed-by=grove-operator,app.kubernetes.io/part-of=inference,"
        "grove.io/podcliquescalinggroup=inference-0-prefill"
    )


def test_selectors_match_pod_labels():
    pod = labels.for_pod(LEADER, "inference-0-prefill-3-leader", 0)
    for selector in (
        labels.pods_of_set("inference"),
        labels.pods_of_replica("inference", 0),
        labels.pods_of_group("inference", "inference-0-prefill"),
        labels.pods_of_clique("inference", "inference-0-prefill-3-leader"),
    ):
        assert selector.items() <= pod.items()
    assert not labels.pods_of_replica("inference", 1).items() <= pod.items()


def test_labels_of_claim_and_service():
    assert labels.for_claim("inference", {}) == COMMON | {"app.kubernetes.io/component": "resource-claim"}
    service = labels.for_replica("inference", 1, "inference-1", ComponentLabel.HEADLESS_SERVICE)
    assert service == COMMON | {
        "app.kubernetes.io/name": "inference-1",
        "app.kubernetes.io/component": "pcs-headless-service",
        "grove.io/podcliqueset-replica-index": "1",
    }
