"""Details of Dynamo's behaviour that are easy to miss: one test for each."""

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
        for each in auxiliary_objects.render(graph(body)).owned
        if each["kind"] == "Service"
    }


def test_frontend_args_replace_default_args():
    body = deployment(component("Web", "frontend", main={"args": ["-m", "my.frontend"]}))
    main = main_of(cliques(body)["web"])
    assert (main["command"], main["args"]) == (["python3"], ["-m", "my.frontend"])


def test_frontend_command_keeps_default_args():
    body = deployment(component("Web", "frontend", main={"command": ["python3.12"]}))
    main = main_of(cliques(body)["web"])
    assert (main["command"], main["args"]) == (["python3.12"], ["-m", "dynamo.frontend"])


def test_user_env_wins_and_env_is_sorted():
    env = [{"name": "ZED", "value": "1"}, {"name": "DYN_NAMESPACE", "value": "mine"}]
    body = deployment(component(main={"env": env}), env=[{"name": "ALPHA"}, {"name": "ZED", "value": "0"}])
    found = env_of(cliques(body)["worker"])
    assert found["DYN_NAMESPACE"] == "mine"
    assert found["ZED"] == "1"
    assert list(found) == sorted(found)


def test_labels_keep_case_and_names_do_not():
    body = deployment(component("VllmWorker"))
    clique = cliques(body)["vllmworker"]
    assert clique["labels"]["nvidia.com/dynamo-component"] == "VllmWorker"
    assert clique["labels"]["nvidia.com/selector"] == "app-vllmworker"
    assert services(body)["app-vllmworker"]["spec"]["selector"]["nvidia.com/dynamo-component"] == "VllmWorker"


@pytest.mark.parametrize("replicas", [1, 7])
def test_rendered_set_has_one_replica(replicas):
    assert rendered(deployment(component(replicas=replicas)))["spec"]["replicas"] == 1


def test_data_parallel_flags_are_added_beside_user_flag():
    args = ["--data-parallel-size", "16", "--data-parallel-hybrid-lb"]
    leader = main_of(cliques(deployment(engine(args, gpus=8)))["worker-ldr"])
    assert leader["args"].count("--data-parallel-hybrid-lb") == 2
    assert leader["args"].count("--data-parallel-size") == 1


@pytest.mark.parametrize("name", ["vllm", "sglang"])
def test_workers_of_multinode_engine_have_no_probes(name):
    body = deployment(engine(["--tensor-parallel-size", "2"], command=["python3", "-m", f"dynamo.{name}"]))
    found = cliques(body)
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        assert probe in main_of(found["worker-ldr"])
        assert probe not in main_of(found["worker-wkr"])


def test_worker_waiting_for_leader_may_read_pods():
    body = deployment(engine(["--tensor-parallel-size", "2"]))
    pod = cliques(body)["worker-wkr"]["spec"]["podSpec"]
    objects = {each["kind"]: each for each in auxiliary_objects.render(graph(body)).owned}
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
def test_tensor_parallel_size_is_read_in_any_spelling(command, args):
    main = main_of(cliques(deployment(engine(args, gpus=8, command=command)))["worker-ldr"])
    assert "--nnodes 2" in " ".join(main["args"])


def test_service_of_untyped_component_ignores_type():
    body = deployment(component("Thing", kind=""))
    selector = services(body)["app-thing"]["spec"]["selector"]
    labels = cliques(body)["thing"]["labels"]
    assert selector.items() <= labels.items()
    assert "nvidia.com/dynamo-component-type" not in labels


def test_multinode_without_backend_is_rejected():
    body = deployment(component(multinode={}), annotations={"nvidia.com/enable-grove": "false"})
    assert [error.path for error in graph_validation.on_create(body, KNOWN).errors] == [
        "spec.components[0].multinode"
    ]


def test_behaviour_where_dynamo_docs_are_outdated():
    """vLLM is multi-node without Ray, and all graphs of a namespace share one SSH key."""
    found = cliques(deployment(engine(["--tensor-parallel-size", "2"])))
    assert "--distributed-executor-backend mp" in " ".join(main_of(found["worker-ldr"])["args"])
    assert naming.SSH_SECRET == "mpi-run-ssh-secret"


def test_long_name_is_cut_or_rejected():
    body = deployment(component("VllmPrefillWorker", multinode={}))
    body["metadata"]["name"] = "a-very-long-deployment-name-for-test"
    assert rendered(body)["metadata"]["name"] == "a-v-c419"
    (error,) = graph_validation.on_create(body, KNOWN).errors
    assert "has 46 characters, the limit is 45" in error.detail


def test_cut_name_leaves_room_for_clique_names():
    body = deployment(component("Web", "frontend"), component("Worker", multinode={}))
    body["metadata"]["name"] = "a-very-long-deployment-name-for-test"
    assert graph_validation.on_create(body, KNOWN).errors == ()
    name = rendered(body)["metadata"]["name"]
    assert len(name) + len("worker") + len("worker-ldr") == 45


def test_group_scaled_to_zero_is_created_with_one():
    body = deployment(component(multinode={}, replicas=0))
    (group,) = rendered(body)["spec"]["template"]["podCliqueScalingGroups"]
    assert group["replicas"] == 1
