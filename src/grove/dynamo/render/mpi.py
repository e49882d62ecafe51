"""Multi-node TensorRT-LLM: the leader starts one process per GPU with `mpirun`, which logs in to the workers
by SSH with a key that all pods of a namespace share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from grove.dynamo.render.command_line import Command, quoted

_FORWARDED = frozenset(
    {
        *("PATH", "HOME", "USER", "CPATH", "LD_LIBRARY_PATH", "PYTHONPATH", "CUDA_VISIBLE_DEVICES"),
        *("MODEL_PATH", "HF_TOKEN", "HF_HOME", "HF_ENDPOINT", "HF_DATASETS_CACHE", "TRANSFORMERS_CACHE"),
        *("HUGGING_FACE_HUB_TOKEN", "TOKENIZERS_PARALLELISM", "TENSORRT_LLM_CACHE_DIR"),
        *("NCCL_DEBUG", "NCCL_IB_DISABLE", "NCCL_P2P_DISABLE"),
        *("TRITON_PTXAS_PATH", "TRTLLM_USE_UCX_KVCACHE"),
    }
)
"""Variables that are exported to processes on other nodes, whether or not the container sets them."""
_TIMEOUT_SECONDS = 300  # seconds until the workers' names resolve


def leader_script(
    command: Command,
    hosts: Sequence[str],
    processes: int,
    variables: Iterable[str],
    port: int,
    *,
    wait_for_names: bool,
) -> str:
    """The command of a leader."""
    exports = " ".join(f"-x {name}" for name in sorted({*_FORWARDED, *variables}))
    inner = f"trtllm-llmapi-launch {_command_text(command)}".replace("'", "'\\''")
    run = (
        'mpirun $([ "$(id -u)" = "0" ] && echo --allow-run-as-root) --oversubscribe '
        f"-n {processes} -H {','.join(hosts)} --mca pml ob1 "
        f'--mca plm_rsh_args "-p {port} -o StrictHostKeyChecking=no -i $HOME/.ssh/id_rsa" '
        f"{exports} bash -c '{inner}'"
    )
    waits = [_wait_for_dns(hosts[1:])] if wait_for_names else []
    return " && ".join([*_ssh_key_setup(port), *waits, run])


def worker_script(port: int) -> str:
    """The command of a worker: an SSH daemon that the leader logs in to."""
    folder = "$HOME/.ssh/host_keys"
    make = f'ssh-keygen -q -t "$kind" -N "" -f {folder}/ssh_host_"$kind"_key'
    settings = [
        f"Port {port}",
        "PidFile $HOME/.ssh/sshd.pid",
        "AuthorizedKeysFile $HOME/.ssh/authorized_keys",
        "PubkeyAuthentication yes",
        "PasswordAuthentication no",
        "PermitRootLogin yes",
        # The home directory may belong to another user than that of the daemon.
        "StrictModes no",
        *(f"HostKey {folder}/ssh_host_{kind}_key" for kind in ("rsa", "ecdsa", "ed25519")),
    ]
    steps = [
        *_ssh_key_setup(port),
        f"mkdir -p {folder}",
        # The daemon needs this folder only if it runs as root.
        "{ mkdir -p /run/sshd 2>/dev/null || true; }",
        f"for kind in rsa ecdsa ed25519; do {make} || exit 1; done",
        _write_file(settings, "$HOME/.ssh/sshd_config"),
        "exec /usr/sbin/sshd -D -f $HOME/.ssh/sshd_config",
    ]
    return " && ".join(steps)


def _ssh_key_setup(port: int) -> list[str]:
    """Installs the shared key in `$HOME/.ssh`; not in `~`, which may be another user's home."""
    client = ["Host *", "IdentityFile $HOME/.ssh/id_rsa", "StrictHostKeyChecking no", f"Port {port}"]
    return [
        "mkdir -p $HOME/.ssh",
        "cp /ssh-pk/private.key $HOME/.ssh/id_rsa",
        "cp /ssh-pk/private.key.pub $HOME/.ssh/id_rsa.pub",
        "cp /ssh-pk/private.key.pub $HOME/.ssh/authorized_keys",
        "chmod 600 $HOME/.ssh/id_rsa $HOME/.ssh/authorized_keys",
        "chmod 644 $HOME/.ssh/id_rsa.pub",
        _write_file(client, "$HOME/.ssh/config"),
    ]


def _write_file(lines: Iterable[str], path: str) -> str:
    listed = " ".join(f'"{line}"' for line in lines)
    return f"printf '%s\\n' {listed} > {path}"


def _wait_for_dns(hosts: Sequence[str]) -> str:
    return (
        f"end=$(($(date +%s) + {_TIMEOUT_SECONDS})); for host in {' '.join(hosts)}; do "
        'until getent hosts "$host" >/dev/null; do '
        '[ "$(date +%s)" -lt "$end" ] || { echo "$host does not resolve" >&2; exit 1; }; sleep 2; done; done'
    )


def _command_text(command: Command) -> str:
    """The command as one line of a shell script."""
    if command.command and command.command[-1] == "-c":
        return " ".join(command.args)
    return " ".join(quoted(word) for word in (*command.command, *command.args))
