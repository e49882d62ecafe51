"""Values compared with OpenAPI schemas of Kubernetes."""

from __future__ import annotations

import pytest

from grove.api.crds import openapi
from grove.api.shapes.schemas import schema_errors

POD = openapi.embedded("io.k8s.api.core.v1.PodSpec")


def container(**fields: object) -> dict[str, object]:
    return {"containers": [{"name": "a", **fields}]}


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (None, ""),
        (container(image="b", resources={"limits": {"cpu": 1, "memory": "1Gi"}}), ""),
        (1, "spec: Invalid value: 1: must be an object"),
        ({}, "spec.containers: Required value"),
        (container(tty="yes"), 'spec.containers[0].tty: Invalid value: "yes": must be true or false'),
        (container(imge="b"), "spec.containers[0].imge: Forbidden: unknown field; did you mean image?"),
        (
            container(resources={"limits": {"cpu": []}}),
            'spec.containers[0].resources.limits[cpu]: Invalid value: "(list)": must be a number or text',
        ),
        (
            container(image="\ud800"),
            'spec.containers[0].image: Invalid value: "(text)": must be valid Unicode',
        ),
    ],
)
def test_difference_from_schema_is_an_error(value, error):
    assert ", ".join(map(str, schema_errors(value, POD, "spec"))) == error
