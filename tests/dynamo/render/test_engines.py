"""Multi-node engines: commands of leaders and workers."""

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


def command_and_args(body, role):
    main = main_of(cliques(body)[f"worker-{role}"])
    return main["command"], main["args"]


def test_sglang_gets_rank_and_leader_address():
    body = deployment(engine(["--tp", "16"], command=["python3", "-m", "dynamo.sglang"]))
    flags = f"--dist-init-addr {LEADER}:29500 --nnodes 2 --node-rank"
    assert command_and_args(body, "ldr") == (["python3", "-m", "dynamo.sglang"], f"--tp 16 {flags} 0".split())
    assert command_and_args(body, "wkr") == (
        ["sh", "-c"],
        [f"exec python3 -m dynamo.sglang --tp 16 {flags} {RANK}"],
    )


def test_vllm_data_parallel_flags_per_node():
    body = deployment(engine(["--data-parallel-size", "16"], gpus=8))
    flags = "--data-parallel-size-local 8 --data-parallel-start-rank {} --data-parallel-address " + LEADER
    flags = f"--data-parallel-hybrid-lb {flags} --data-parallel-rpc-port 13445"
    assert command_and_args(body, "ldr")[1] == ["--data-parallel-size", "16", *flags.format(0).split(" ")]
    (line,) = command_and_args(body, "wkr")[1]
    assert line.endswith(flags.format(f"$(( 8 * {RANK} ))"))
    assert "initContainers" not in cliques(body)["worker-wkr"]["spec"]["podSpec"]


def test_vllm_that_fits_one_node_gets_no_flags():
    body = deployment(engine(["--model", "m"], gpus=8))
    assert (
        command_and_args(body, "ldr")
        == command_and_args(body, "wkr")
        == (["python3", "-m", "dynamo.vllm"], ["--model", "m"])
    )


def test_shell_flags_follow_last_engine_word():
    script = "export A=vllm; python3 -m dynamo.vllm --served-model-name my-vllm-x -tp 4 | tee log"
    body = deployment(engine([script], gpus=2, command=["/bin/bash", "-c"]))
    command, (line,) = command_and_args(body, "ldr")
    assert command == ["/bin/bash", "-c"]
    assert line.startswith(
        "export A=vllm; python3 -m dynamo.vllm --served-model-name my-vllm-x --distributed-"
    )
    assert line.endswith("--node-rank 0 -tp 4 | tee log")


def test_trtllm_leader_starts_after_workers():
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


def test_only_multinode_trtllm_needs_ssh_key():
    command = ["python3", "-m", "dynamo.trtllm"]
    assert auxiliary_objects.needs_ssh(graph(deployment(engine([], command=command))))
    assert not auxiliary_objects.needs_ssh(graph(deployment(engine([], command=command, nodes=1))))
    assert not auxiliary_objects.needs_ssh(graph(deployment(engine([]))))


@pytest.mark.parametrize("role", ["ldr", "wkr"])
def test_scripts_are_valid_shell(role):
    args = ["--model", "it's", "--opts", '{"a": [1]}']
    _, (script,) = command_and_args(
        deployment(engine(args, command=["python3", "-m", "dynamo.trtllm"])), role
    )
    subprocess.run(["sh", "-n", "-c", script], check=True)


@pytest.mark.parametrize("gpu", [{"amd.com/gpu": 4}, {"nvidia.com/mig-1g.5gb": "4"}, {"gpu": "4"}])
def test_gpu_resources_are_recognised_by_name(gpu):
    main = {"command": ["python3", "-m", "dynamo.vllm"], "args": ["--tensor-parallel-size", "8"]}
    main["resources"] = {"requests": gpu}
    body = deployment(component(main=main, multinode={}))
    assert "--nnodes" in command_and_args(body, "ldr")[1]


def test_compilation_cache_is_mounted_at_vllm_path():
    cache = {"pvcName": "cache"}
    body = deployment(component(main={"command": ["python3", "-m", "dynamo.vllm"]}, compilationCache=cache))
    clique = cliques(body)["worker"]
    assert {"name": "cache", "mountPath": "/root/.cache/vllm"} in main_of(clique)["volumeMounts"]
    assert {"name": "VLLM_CACHE_ROOT", "value": "/root/.cache/vllm"} in main_of(clique)["env"]
    assert clique["spec"]["podSpec"]["volumes"][0] == {
        "name": "cache",
        "persistentVolumeClaim": {"claimName": "cache"},
    }


def test_shared_memory_replaces_mount_of_user():
    mount = {"name": "mine", "mountPath": "/dev/shm"}
    body = deployment(component(main={"volumeMounts": [mount]}, sharedMemorySize="2Gi"))
    pod = cliques(body)["worker"]["spec"]["podSpec"]
    assert pod["containers"][0]["volumeMounts"] == [{"name": "shared-memory", "mountPath": "/dev/shm"}]
    assert pod["volumes"][0]["emptyDir"]["sizeLimit"] == "2Gi"


def test_shared_memory_size_zero_adds_no_volume():
    pod = cliques(deployment(component(sharedMemorySize="0")))["worker"]["spec"]["podSpec"]
    assert "volumes" not in pod


# The kubelet expands `$(NAME)` before a shell runs.
WORDS = st.text(st.characters(min_codepoint=9, max_codepoint=126, exclude_characters="\x0b\x0c"), max_size=12)


@given(st.lists(WORDS.filter(lambda word: "$(" not in word), min_size=1, max_size=4))
@settings(deadline=None)
def test_quoted_word_survives_the_shell(words):
    line = "printf '%s\\0' " + " ".join(map(quoted, words))
    out = subprocess.run(["/bin/sh", "-c", line], capture_output=True, check=True).stdout
    assert out.decode().split("\0")[:-1] == words


def test_kubelet_variable_reference_is_not_escaped():
    command = Command(("python3", "-m", "dynamo.vllm"), ("--host", "$(POD_IP)"))
    changed = with_flags(command, ["--x"], "vllm", in_shell=True)
    assert changed.args == ('exec python3 -m dynamo.vllm --host "$(POD_IP)" --x',)


def test_kai_pods_get_a_queue_label():
    kai = podcliqueset.RenderSettings(scheduler="kai-scheduler")
    for body, queue in (
        (deployment(component()), "dynamo"),
        (deployment(component(), annotations={"nvidia.com/kai-scheduler-queue": " mine "}), "mine"),
    ):
        (clique,) = rendered(body, kai)["spec"]["template"]["cliques"]
        assert clique["spec"]["podSpec"]["schedulerName"] == "kai-scheduler"
        assert clique["labels"]["kai.scheduler/queue"] == queue


def test_scheduler_of_user_is_kept():
    body = deployment(component())
    body["spec"]["components"][0]["podTemplate"]["spec"]["schedulerName"] = "mine"
    (clique,) = rendered(body, podcliqueset.RenderSettings(scheduler="kai-scheduler"))["spec"]["template"][
        "cliques"
    ]
    assert clique["spec"]["podSpec"]["schedulerName"] == "mine"
    assert "kai.scheduler/queue" not in clique["labels"]
