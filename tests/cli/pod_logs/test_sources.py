"""Which containers of which pods have logs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from grove.cli.pod_logs.sources import (
    DEFAULT_CONTAINER,
    ContainerChoice,
    LogPod,
    pod_selector,
    running_sources,
)
from grove.explanation.model import ObjectRef
from grove.kube.errors import ConfigError

RUNNING, ENDED = {"running": {}}, {"terminated": {"exitCode": 0}}


def a_pod(annotations: dict[str, str] | None = None, **states: dict[str, Any]) -> LogPod:
    """A pod with init container `init` and containers `main` and `side`, in these states."""
    statuses = [{"name": name, "restartCount": 2, **state} for name, state in states.items()]
    body = {
        "metadata": {"name": "p", "uid": "u", "annotations": annotations or {}},
        "spec": {"containers": [{"name": "main"}, {"name": "side"}], "initContainers": [{"name": "init"}]},
        "status": {
            "containerStatuses": [each for each in statuses if each["name"] != "init"],
            "initContainerStatuses": [each for each in statuses if each["name"] == "init"],
        },
    }
    return msgspec.convert(body, LogPod)


ALL = {"main": {"state": RUNNING}, "side": {"state": RUNNING}, "init": {"state": ENDED}}


@pytest.mark.parametrize(
    ("choice", "annotations", "expected"),
    [
        (ContainerChoice(), {}, ["main"]),
        (ContainerChoice(), {DEFAULT_CONTAINER: "side"}, ["side"]),
        (ContainerChoice(), {DEFAULT_CONTAINER: "gone"}, ["main"]),
        (ContainerChoice("init"), {}, ["init"]),
        (ContainerChoice("other"), {}, []),
        (ContainerChoice(all=True), {}, ["init", "main", "side"]),
        (ContainerChoice(previous=True), {}, []),
    ],
)
def test_containers_are_chosen_as_kubectl_does(choice, annotations, expected):
    assert [each.container for each in choice.sources(a_pod(annotations, **ALL))] == expected


def test_container_that_has_not_started_has_no_log():
    pod = a_pod(main={"state": {"waiting": {"reason": "ImagePullBackOff"}}})
    assert not list(ContainerChoice().sources(pod))
    assert ContainerChoice().missing(pod) == "ImagePullBackOff"
    assert ContainerChoice().missing(a_pod()) == "has not started"
    assert ContainerChoice().missing(a_pod(**ALL)) == ""
    assert ContainerChoice("other").missing(a_pod(**ALL)) == ""


def test_previous_run_is_of_a_container_that_has_restarted():
    pod = a_pod(main={"state": RUNNING, "lastState": ENDED})
    assert [each.restart for each in ContainerChoice(previous=True).sources(pod)] == [2]


def test_each_run_of_a_container_is_a_source():
    (source,) = running_sources(a_pod(main={"state": RUNNING}, side={"state": ENDED}))
    assert (str(source), source.restart) == ("p/main", 2)


def test_unknown_container_is_an_error_with_those_there_are():
    with pytest.raises(ConfigError, match="no pod has it: choose one of init, main, side"):
        ContainerChoice("x").check([a_pod()])
    ContainerChoice("x").check([])


@pytest.mark.parametrize(
    ("kind", "labels", "fields"),
    [
        ("PodCliqueSet", {}, ""),
        ("PodClique", {"grove.io/podclique": "o"}, ""),
        ("PodCliqueScalingGroup", {"grove.io/podcliquescalinggroup": "o"}, ""),
        ("PodGang", {"grove.io/podgang": "o"}, ""),
        ("Pod", None, "metadata.name=o"),
    ],
)
def test_pods_are_selected_by_labels(kind, labels, fields):
    found, selected = pod_selector(ObjectRef(kind, "o", "team"), "demo")
    of_set = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "demo"}
    assert (found, selected) == ({} if labels is None else of_set | labels, fields)


def test_pods_of_a_graph_are_selected_by_its_label():
    graph = ObjectRef("DynamoGraphDeployment", "g", "team")
    assert pod_selector(graph, None) == ({"nvidia.com/dynamo-graph-deployment-name": "g"}, "")
