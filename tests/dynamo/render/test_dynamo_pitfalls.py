"""Where a careful reader of Dynamo's behaviour would still go wrong: one test for each."""

from __future__ import annotations

import pytest

from grove.dynamo import naming
from grove.dynamo.admission import graph_validation
from grove.dynamo.render import auxiliary_objects
from grove.dynamo.render.leader_wait_script import SCRIPT
from tests.dynamo.builders import (
    KNOWN,
    VLLM,
    cliques,
    component,
    deployment,
    engine,
    env_of,
    graph,
    main_of,
    rendered,
)


def services(body):
    return {
        each["metadata"]["name"]: each
        for each in auxiliary_objects.owned_objects(graph(body))
        if each["kind"] == "Service"
    }


def test_args_of_a_frontend_replace_the_usual_ones_and_its_command_stays():
    body = deployment(component("Web", "frontend", main={"args": ["-m", "my.frontend"]}))
    main = main_of(cliques(body)["web"])
    assert (main["command"], main["args"]) == (["python3"], ["-m", "my.frontend"])


def test_a_command_of_a_frontend_keeps_the_usual_args():
    body = deployment(component("Web", "frontend", main={"command": ["python3.12"]}))
    main = main_of(cliques(body)["web"])
    assert (main["command"], main["args"]) == (["python3.12"], ["-m", "dynamo.frontend"])


def test_a_user_may_set_even_the_namespace_and_variables_are_sorted():
    env = [{"name": "ZED", "value": "1"}, {"name": "DYN_NAMESPACE", "value": "mine"}]
    body = deployment(component(main={"env": env}), env=[{"name": "ALPHA"}, {"name": "ZED", "value": "0"}])
    found = env_of(cliques(body)["worker"])
    assert found["DYN_NAMESPACE"] == "mine"
    assert found["ZED"] == "1"
    assert list(found) == sorted(found)


def test_labels_keep_the_case_and_names_do_not():
    body = deployment(component("VllmWorker"))
    clique = cliques(body)["vllmworker"]
    assert clique["labels"]["nvidia.com/dynamo-component"] == "VllmWorker"
    assert clique["labels"]["nvidia.com/selector"] == "app-vllmworker"
    assert services(body)["app-vllmworker"]["spec"]["selector"]["nvidia.com/dynamo-component"] == "VllmWorker"


@pytest.mark.parametrize("replicas", [1, 7])
def test_the_set_has_one_replica_whatever_its_components_have(replicas):
    assert rendered(deployment(component(replicas=replicas)))["spec"]["replicas"] == 1


def test_flags_for_data_parallelism_come_although_the_user_has_one_of_them():
    args = ["--data-parallel-size", "16", "--data-parallel-hybrid-lb"]
    leader = main_of(cliques(deployment(engine(args, gpus=8)))["worker-ldr"])
    assert leader["args"].count("--data-parallel-hybrid-lb") == 2
    assert leader["args"].count("--data-parallel-size") == 1


@pytest.mark.parametrize("name", ["vllm", "sglang"])
def test_workers_of_an_engine_that_spans_nodes_have_no_probes(name):
    body = deployment(engine(["--tensor-parallel-size", "2"], command=["python3", "-m", f"dynamo.{name}"]))
    found = cliques(body)
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        assert probe in main_of(found["worker-ldr"])
        assert probe not in main_of(found["worker-wkr"])


def test_who_waits_for_a_leader_may_look_at_pods():
    body = deployment(engine(["--tensor-parallel-size", "2"]))
    pod = cliques(body)["worker-wkr"]["spec"]["podSpec"]
    objects = {each["kind"]: each for each in auxiliary_objects.owned_objects(graph(body))}
    assert pod["serviceAccountName"] == objects["ServiceAccount"]["metadata"]["name"]
    assert {
        "apiGroups": [""],
        "resources": ["endpoints", "pods"],
        "verbs": ["get", "list", "watch"],
    } in objects["Role"]["rules"]
    assert objects["RoleBinding"]["roleRef"]["name"] == objects["Role"]["metadata"]["name"]
    assert objects["ConfigMap"]["data"] == {"wait-for-leader.py": SCRIPT}
    compile(SCRIPT, "wait-for-leader.py", "exec")


@pytest.mark.parametrize(
    ("command", "args"),
    [
        (VLLM, ["--tensor-parallel-size=16"]),
        ([*VLLM, "--tensor-parallel-size", "16"], []),
        (VLLM, ["-tp", "16"]),
        (["sh", "-c"], ["python3 -m dynamo.vllm --tensor-parallel-size=16"]),
    ],
)
def test_a_size_is_seen_however_it_is_spelled(command, args):
    main = main_of(cliques(deployment(engine(args, gpus=8, command=command)))["worker-ldr"])
    assert "--nnodes 2" in " ".join(main["args"])


def test_a_component_without_a_type_is_not_selected_by_one():
    body = deployment(component("Thing", kind=""))
    selector = services(body)["app-thing"]["spec"]["selector"]
    labels = cliques(body)["thing"]["labels"]
    assert selector.items() <= labels.items()
    assert "nvidia.com/dynamo-component-type" not in labels


def test_a_multinode_component_that_nothing_can_run_is_refused_not_stranded():
    body = deployment(component(multinode={}), annotations={"nvidia.com/enable-grove": "false"})
    assert [error.path for error in graph_validation.on_create(body, KNOWN).errors] == [
        "spec.components[0].multinode"
    ]


def test_what_the_documentation_has_outdated():
    """vLLM spans nodes without Ray, and all deployments of a namespace share one SSH key."""
    found = cliques(deployment(engine(["--tensor-parallel-size", "2"])))
    assert "--distributed-executor-backend mp" in " ".join(main_of(found["worker-ldr"])["args"])
    assert naming.SSH_SECRET == "mpi-run-ssh-secret"


def test_a_long_name_is_cut_and_still_refused_if_that_is_not_enough():
    body = deployment(component("VllmPrefillWorker", multinode={}))
    body["metadata"]["name"] = "a-very-long-deployment-name-for-test"
    assert rendered(body)["metadata"]["name"] == "a-v-c419"
    (error,) = graph_validation.on_create(body, KNOWN).errors
    assert "takes 46 characters, and 45 are left" in error.detail


def test_a_cut_name_leaves_room_for_all_parts():
    body = deployment(component("Web", "frontend"), component("Worker", multinode={}))
    body["metadata"]["name"] = "a-very-long-deployment-name-for-test"
    assert graph_validation.on_create(body, KNOWN).errors == ()
    name = rendered(body)["metadata"]["name"]
    assert len(name) + len("worker") + len("worker-ldr") == 45


def test_a_group_is_made_with_one_replica_where_none_are_wanted():
    body = deployment(component(multinode={}, replicas=0))
    (group,) = rendered(body)["spec"]["template"]["podCliqueScalingGroups"]
    assert group["replicas"] == 1
