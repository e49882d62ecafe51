"""Objects of earlier builds under the current CRDs: the API server returns them as they were stored."""

from __future__ import annotations

import pytest

from tests.cluster.api.objects import RESOURCES, create_strictly
from tests.upgrade import recordings

KINDS = RESOURCES.keys() - {"ResourceClaimTemplate"}


@pytest.mark.parametrize("name", recordings.names())
async def test_recorded_object_is_accepted_and_unchanged(crds, client, namespace, name):
    """A field that is dropped or defaulted on read would change the hash that decides whether pods are
    replaced."""
    own = [body for body in recordings.load(name).objects if body["kind"] in KINDS]
    assert own
    for body in own:
        metadata = {"name": body["metadata"]["name"], "namespace": namespace}
        if not RESOURCES[body["kind"]].namespaced:
            del metadata["namespace"]
        kept = {key: body[key] for key in ("apiVersion", "kind", "spec")}
        stored = await create_strictly(client, {**kept, "metadata": metadata}, namespace)
        assert stored["spec"] == body["spec"]
