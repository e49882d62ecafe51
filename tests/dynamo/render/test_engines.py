"""Engines that span nodes: what their leaders and workers are told."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grove.dynamo.render import auxiliary_objects, podcliqueset
from grove.dynamo.render.command_line import Command, quoted, with_flags
from tests.dynamo.builders import cliques, component, deployment, engine, graph, main_of, rendered

HOST = "$(GROVE_PCSG_NAME)-$(GROVE_PCSG_INDEX)-worker-{}.$(GROVE_HEADLESS_SERVICE)"
LEADER = HOST.format("ldr-0")
RANK = "$((GROVE_PCLQ_POD_INDEX + 1))"


def told(body, role):
    main = main_of(cliques(body)[f"worker-{role}"])
    return main["command"], main["args"]


def test_sglang():
    body = deployment(engine(["--tp", "16"], command=["python3", "-m", "dynamo.sglang"]))
    flags = f"--dist-init-addr {LEADER}:29500 --nnodes 2 --node-rank"
    assert told(body, "ldr") == (["python3", "-m", "dynamo.sglang"], f"--tp 16 {flags} 0".split())
    assert told(body, "wkr") == (["sh", "-c"], [f"exec python3 -m dynamo.sglang --tp 16 {flags} {RANK}"])


def test_vllm_with_copies_on_every_node():
    body = deployment(engine(["--data-parallel-size", "16"], gpus=8))
    flags = "--data-parallel-size-local 8 --data-parallel-start-rank {} --data-parallel-address " + LEADER
    flags = f"--data-parallel-hybrid-lb {flags} --data-parallel-rpc-port 13445"
    assert told(body, "ldr")[1] == ["--data-parallel-size", "16", *flags.format(0).split(" ")]
    (line,) = told(body, "wkr")[1]
    assert line.endswith(flags.format(f"$(( 8 * {RANK} ))"))
    assert "initContainers" not in cliques(body)["worker-wkr"]["spec"]["podSpec"]


def test_vllm_that_fits_one_node_is_left_alone():
    body = deployment(engine(["--model", "m"], gpus=8))
    assert told(body, "ldr") == told(body, "wkr") == (["python3", "-m", "dynamo.vllm"], ["--model", "m"])


def test_in_a_shell_the_flags_come_after_the_last_word_about_the_engine():
    script = "export A=vllm; python3 -m dynamo.vllm --served-model-name my-vllm-x -tp 4 | tee log"
    body = deployment(engine([script], gpus=2, command=["/bin/bash", "-c"]))
    command, (line,) = told(body, "ldr")
    assert command == ["/bin/bash", "-c"]
    assert line.startswith(
        "export A=vllm; python3 -m dynamo.vllm --served-model-name my-vllm-x --distributed-"
    )
    assert line.endswith("--node-rank 0 -tp 4 | tee log")


def test_tensorrt_starts_its_leader_after_its_workers():
    body = deployment(engine(["--model", "it's"], gpus=4, command=["python3", "-m", "dynamo.trtllm"]))
    template = rendered(body)["spec"]["template"]
    assert template["cliqueStartupType"] == "CliqueStartupTypeExplicit"
    leader, worker = template["cliques"]
    assert leader["spec"]["startsAfter"] == ["worker-wkr"]
    assert "startsAfter" not in worker["spec"]
    (line,) = main_of(leader)["args"]
    assert f"-n 8 -H {LEADER},{HOST.format('wkr-0')} --mca pml ob1" in line
    assert "-x DYN_NAMESPACE -x" in line
    assert "trtllm-llmapi-launch python3 -m dynamo.trtllm" in line
    assert main_of(worker)["readinessProbe"]["tcpSocket"] == {"port": 2222}
    assert "livenessProbe" not in main_of(worker)
    assert {"name": "mpi-run-ssh-secret", "mountPath": "/ssh-pk", "readOnly": True} in main_of(worker)[
        "volumeMounts"
    ]


def test_only_tensorrt_over_several_nodes_needs_a_key():
    command = ["python3", "-m", "dynamo.trtllm"]
    assert auxiliary_objects.needs_ssh(graph(deployment(engine([], command=command))))
    assert not auxiliary_objects.needs_ssh(graph(deployment(engine([], command=command, nodes=1))))
    assert not auxiliary_objects.needs_ssh(graph(deployment(engine([]))))


@pytest.mark.parametrize("role", ["ldr", "wkr"])
def test_the_scripts_are_ones_that_a_shell_can_read(role):
    args = ["--model", "it's", "--opts", '{"a": [1]}']
    _, (script,) = told(deployment(engine(args, command=["python3", "-m", "dynamo.trtllm"])), role)
    subprocess.run(["sh", "-n", "-c", script], check=True)


@pytest.mark.parametrize("gpu", [{"amd.com/gpu": 4}, {"nvidia.com/mig-1g.5gb": "4"}, {"gpu": "4"}])
def test_gpus_are_known_by_their_names(gpu):
    main = {"command": ["python3", "-m", "dynamo.vllm"], "args": ["--tensor-parallel-size", "8"]}
    main["resources"] = {"requests": gpu}
    body = deployment(component(main=main, multinode={}))
    assert "--nnodes" in told(body, "ldr")[1]


def test_a_compilation_cache_is_mounted_where_vllm_looks():
    cache = {"pvcName": "cache"}
    body = deployment(component(main={"command": ["python3", "-m", "dynamo.vllm"]}, compilationCache=cache))
    clique = cliques(body)["worker"]
    assert {"name": "cache", "mountPath": "/root/.cache/vllm"} in main_of(clique)["volumeMounts"]
    assert {"name": "VLLM_CACHE_ROOT", "value": "/root/.cache/vllm"} in main_of(clique)["env"]
    assert clique["spec"]["podSpec"]["volumes"][0] == {
        "name": "cache",
        "persistentVolumeClaim": {"claimName": "cache"},
    }


def test_shared_memory_takes_the_place_of_the_users():
    mount = {"name": "mine", "mountPath": "/dev/shm"}
    body = deployment(component(main={"volumeMounts": [mount]}, sharedMemorySize="2Gi"))
    pod = cliques(body)["worker"]["spec"]["podSpec"]
    assert pod["containers"][0]["volumeMounts"] == [{"name": "shared-memory", "mountPath": "/dev/shm"}]
    assert pod["volumes"][0]["emptyDir"]["sizeLimit"] == "2Gi"


def test_no_shared_memory():
    pod = cliques(deployment(component(sharedMemorySize="0")))["worker"]["spec"]["podSpec"]
    assert "volumes" not in pod


# A kubelet replaces `$(NAME)` before any shell sees it.
WORDS = st.text(st.characters(min_codepoint=9, max_codepoint=126, exclude_characters="\x0b\x0c"), max_size=12)


@given(st.lists(WORDS.filter(lambda word: "$(" not in word), min_size=1, max_size=4))
@settings(deadline=None)
def test_a_quoted_word_is_read_as_it_was(words):
    line = "printf '%s\\0' " + " ".join(map(quoted, words))
    out = subprocess.run(["/bin/sh", "-c", line], capture_output=True, check=True).stdout
    assert out.decode().split("\0")[:-1] == words


def test_a_reference_to_a_variable_is_left_to_the_kubelet():
    command = Command(("python3", "-m", "dynamo.vllm"), ("--host", "$(POD_IP)"))
    changed = with_flags(command, ["--x"], "vllm", in_shell=True)
    assert changed.args == ('exec python3 -m dynamo.vllm --host "$(POD_IP)" --x',)


def test_kai_gets_a_queue_with_its_pods():
    kai = podcliqueset.RenderSettings(scheduler="kai-scheduler")
    for body, queue in (
        (deployment(component()), "dynamo"),
        (deployment(component(), annotations={"nvidia.com/kai-scheduler-queue": " mine "}), "mine"),
    ):
        (clique,) = rendered(body, kai)["spec"]["template"]["cliques"]
        assert clique["spec"]["podSpec"]["schedulerName"] == "kai-scheduler"
        assert clique["labels"]["kai.scheduler/queue"] == queue


def test_a_scheduler_that_the_user_names_stays():
    body = deployment(component())
    body["spec"]["components"][0]["podTemplate"]["spec"]["schedulerName"] = "mine"
    (clique,) = rendered(body, podcliqueset.RenderSettings(scheduler="kai-scheduler"))["spec"]["template"][
        "cliques"
    ]
    assert clique["spec"]["podSpec"]["schedulerName"] == "mine"
    assert "kai.scheduler/queue" not in clique["labels"]
