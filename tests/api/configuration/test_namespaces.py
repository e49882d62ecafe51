"""The configuration of an operator for some namespaces."""

from __future__ import annotations

import pytest

from grove.api.configuration.loading import ConfigurationError, load
from grove.schedulers.registry import backends

LISTED = {"namespaces": ["a", "b"]}
WHY = "needs the whole cluster: remove it, or namespaces"


def profile(**config: object) -> dict[str, object]:
    return {"scheduler": {"profiles": [{"name": "default-scheduler", "config": config}]}}


@pytest.mark.parametrize(
    "more", [{}, profile(), profile(placement="Off"), profile(placement=False), profile(gangScheduling=True)]
)
def test_gangs_are_not_placed_for_some_namespaces(more):
    config = load(LISTED | more)
    assert config.namespaces == ("a", "b")
    assert backends(config.scheduler).placement is None
    assert backends(load(profile()).scheduler).placement is not None


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({"topologyAwareScheduling": {"enabled": True}}, f"topologyAwareScheduling.enabled: {WHY}"),
        ({"network": {"autoMNNVLEnabled": True}}, f"network.autoMNNVLEnabled: {WHY}"),
        (profile(placement="All"), f"scheduler.profiles[0].config.placement: {WHY}"),
        (
            {"dynamo": {"topologyAwareScheduling": {"mode": "affinity"}}},
            f"dynamo.topologyAwareScheduling.mode: {WHY}",
        ),
        ({"namespaces": ["a", "a"]}, "namespaces[1]: a is listed twice"),
        ({"namespaces": ["a", "B"]}, "namespaces[1]: 'B' is no name of a namespace"),
        ({"namespaces": "a"}, 'namespaces: must be a list, not "a"'),
    ],
)
def test_what_needs_the_whole_cluster_is_a_problem(document, problem):
    with pytest.raises(ConfigurationError) as found:
        load(LISTED | document)
    assert found.value.problems == (problem,)
