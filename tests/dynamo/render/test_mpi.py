"""Multi-node TensorRT-LLM: a shell runs the scripts; fake programs record their arguments."""

from __future__ import annotations

import re
import stat
import subprocess
from pathlib import Path

import pytest

from tests.dynamo.builders import cliques, deployment, engine, main_of

TRTLLM = ["python3", "-m", "dynamo.trtllm"]
KUBELET = {
    "GROVE_PCSG_NAME": "app-0-worker",
    "GROVE_PCSG_INDEX": "0",
    "GROVE_HEADLESS_SERVICE": "app-0.ns.svc.cluster.local",
}
HOST = "app-0-worker-0-worker-{}.app-0.ns.svc.cluster.local"
RECORDS = "#!/bin/sh\nprintf '%s\\0' \"$@\" > {}\n"
HANDED_ON = [
    "CPATH",
    "CUDA_VISIBLE_DEVICES",
    "HF_DATASETS_CACHE",
    "HF_ENDPOINT",
    "HF_HOME",
    "HF_TOKEN",
    "HOME",
    "HUGGING_FACE_HUB_TOKEN",
    "LD_LIBRARY_PATH",
    "MODEL_PATH",
    "NCCL_DEBUG",
    "NCCL_IB_DISABLE",
    "NCCL_P2P_DISABLE",
    "PATH",
    "PYTHONPATH",
    "TENSORRT_LLM_CACHE_DIR",
    "TOKENIZERS_PARALLELISM",
    "TRANSFORMERS_CACHE",
    "TRITON_PTXAS_PATH",
    "TRTLLM_USE_UCX_KVCACHE",
    "USER",
]


def script(role: str, args: list[str], command: list[str] | None = None) -> str:
    body = deployment(engine(args, gpus=4, command=command or TRTLLM))
    main = main_of(cliques(body)[f"worker-{role}"])
    assert main["command"] == ["/bin/sh", "-c"]
    (text,) = main["args"]
    return re.sub(r"\$\((\w+)\)", lambda found: KUBELET.get(found[1], found[0]), text)


def run(folder: Path, text: str, *programs: str) -> dict[str, list[str]]:
    """The arguments of each of the programs, with the SSH key of the namespace in place."""
    key, programs_at = folder / "ssh-pk", folder / "bin"
    key.mkdir()
    programs_at.mkdir()
    (key / "private.key").write_text("secret\n")
    (key / "private.key.pub").write_text("public\n")
    for name in programs:
        (programs_at / name).write_text(RECORDS.format(folder / f"{name}.args"))
        (programs_at / name).chmod(0o755)
    text = text.replace("/ssh-pk", str(key)).replace("/usr/sbin/sshd", str(programs_at / "sshd"))
    text = text.replace("/run/sshd", str(folder / "run"))
    env = {"HOME": str(folder), "PATH": f"{programs_at}:/usr/bin:/bin"}
    subprocess.run(["/bin/sh", "-c", text], check=True, env=env)
    return {name: (folder / f"{name}.args").read_text().split("\0")[:-1] for name in programs}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    ("command", "args", "started"),
    [
        (TRTLLM, ["--model", "m"], "python3 -m dynamo.trtllm --model m"),
        (TRTLLM, ["--model", "it's"], 'python3 -m dynamo.trtllm --model "it\'s"'),
        (["/bin/sh", "-c"], ["python3 -m dynamo.trtllm --model m"], "python3 -m dynamo.trtllm --model m"),
    ],
)
def test_leader_starts_one_process_per_gpu(tmp_path, command, args, started):
    arguments = run(tmp_path, script("ldr", args, command), "mpirun")["mpirun"]
    arguments = arguments[1:] if arguments[0] == "--allow-run-as-root" else arguments
    launched = ["bash", "-c", f"trtllm-llmapi-launch {started}"]
    assert arguments[:8] == [
        *("--oversubscribe", "-n", "8"),
        *("-H", f"{HOST.format('ldr-0')},{HOST.format('wkr-0')}"),
        *("--mca", "pml", "ob1"),
    ]
    login = f"-p 2222 -o StrictHostKeyChecking=no -i {tmp_path}/.ssh/id_rsa"
    assert arguments[8:11] == ["--mca", "plm_rsh_args", login]
    assert arguments[-3:] == launched
    exported = arguments[12:-3:2]
    assert set(arguments[11:-3:2]) == {"-x"}
    assert exported == sorted(exported)
    assert {*HANDED_ON, "DYN_NAMESPACE", "OMPI_MCA_orte_keep_fqdn_hostnames"} <= set(exported)


def test_allow_run_as_root_only_for_root():
    found = script("ldr", [])
    assert found.count("--allow-run-as-root") == 1
    assert '$([ "$(id -u)" = "0" ] && echo --allow-run-as-root)' in found


def test_leader_logs_in_with_namespace_key(tmp_path):
    run(tmp_path, script("ldr", []), "mpirun")
    home = tmp_path / ".ssh"
    assert ((home / "id_rsa").read_text(), mode(home / "id_rsa")) == ("secret\n", 0o600)
    assert f"IdentityFile {home}/id_rsa" in (home / "config").read_text()
    assert "Port 2222" in (home / "config").read_text()


def test_worker_daemon_accepts_namespace_key(tmp_path):
    arguments = run(tmp_path, script("wkr", []), "sshd", "ssh-keygen")
    home = tmp_path / ".ssh"
    assert arguments["sshd"] == ["-D", "-f", f"{home}/sshd_config"]
    settings = (home / "sshd_config").read_text().splitlines()
    assert {"Port 2222", f"AuthorizedKeysFile {home}/authorized_keys"} <= set(settings)
    assert f"HostKey {home}/host_keys/ssh_host_ed25519_key" in settings
    assert (home / "authorized_keys").read_text() == "public\n"
    assert arguments["ssh-keygen"][-1].startswith(f"{home}/host_keys/")


def test_worker_is_ready_when_ssh_port_is_open():
    worker = main_of(cliques(deployment(engine([], gpus=4, command=TRTLLM)))["worker-wkr"])
    assert worker["readinessProbe"] == {
        "tcpSocket": {"port": 2222},
        "initialDelaySeconds": 20,
        "periodSeconds": 20,
        "timeoutSeconds": 5,
        "failureThreshold": 10,
    }
    assert worker.keys().isdisjoint({"livenessProbe", "startupProbe"})


@pytest.mark.parametrize("role", ["ldr", "wkr"])
def test_both_roles_have_key_and_full_host_names(role):
    clique = cliques(deployment(engine([], gpus=4, command=TRTLLM)))[f"worker-{role}"]
    secret = {"secretName": "mpi-run-ssh-secret", "defaultMode": 0o644}
    assert {"name": "mpi-run-ssh-secret", "secret": secret} in clique["spec"]["podSpec"]["volumes"]
    last = main_of(clique)["env"][-1]
    assert last == {"name": "OMPI_MCA_orte_keep_fqdn_hostnames", "value": "1"}
