"""URL paths of resources, which never address more than one object by mistake."""

from __future__ import annotations

import pytest

from grove.kube.client.resource import CLUSTER_ROLES, LEASES, NODES, PODS, Resource


@pytest.mark.parametrize(
    ("resource", "namespace", "name", "subresource", "path"),
    [
        (PODS, "n", "a", "", "/api/v1/namespaces/n/pods/a"),
        (PODS, None, None, "", "/api/v1/pods"),
        (PODS, "n", None, "", "/api/v1/namespaces/n/pods"),
        (PODS, "n", "a", "status", "/api/v1/namespaces/n/pods/a/status"),
        (NODES, None, "a", "", "/api/v1/nodes/a"),
        (NODES, "ignored", "a", "", "/api/v1/nodes/a"),
        (LEASES, "n", "a", "", "/apis/coordination.k8s.io/v1/namespaces/n/leases/a"),
        (
            CLUSTER_ROLES,
            None,
            "system:node",
            "",
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node",
        ),
        (PODS, "n", "../secrets/b", "", "/api/v1/namespaces/n/pods/..%2Fsecrets%2Fb"),
    ],
)
def test_resource_path(
    resource: Resource, namespace: str | None, name: str | None, subresource: str, path: str
) -> None:
    assert resource.path(namespace, name, subresource) == path


@pytest.mark.parametrize(("namespace", "name"), [(None, "a"), ("", "a"), ("n", "")])
def test_path_without_name_or_namespace_is_rejected(namespace: str | None, name: str) -> None:
    with pytest.raises(ValueError, match=r"give the namespace|give one"):
        PODS.path(namespace, name)
