"""Flags, variables and init containers per engine, which join the pods of a multi-node replica."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from grove.api.formats import quantities
from grove.dynamo import keys, naming
from grove.dynamo.graph import Body, Graph, GraphComponent
from grove.dynamo.render import command_line
from grove.dynamo.render.addressing import Addresses, Role
from grove.dynamo.render.command_line import Command
from grove.dynamo.render.containers import field_env
from grove.dynamo.render.mpi import leader_script, worker_script

_PORT = "29500"
_RPC_PORT = "13445"
_SSH_PORT = 2222
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_VLLM_CACHE = "/root/.cache/vllm"


class EngineContainer(Struct, frozen=True):
    """A main container for its engine, with the volumes and init containers that it needs."""

    container: Body
    volumes: tuple[Body, ...] = ()
    init_containers: tuple[Body, ...] = ()


class ComponentRole(Struct, frozen=True):
    """One role of one component, and the addresses of the other pods."""

    graph: Graph
    component: GraphComponent
    role: Role
    addresses: Addresses


def framework(graph: Graph, component: GraphComponent) -> str:
    """The engine of a component: the one that its command starts, else the one that the graph names; empty
    for components that run no engine."""
    if not component.runs_engine:
        return ""
    found = command_line.detect_frameworks(command_of(component.main))
    return found[0] if found else graph.framework


def command_of(container: Body) -> Command:
    """Command and arguments of a container."""
    return Command(tuple(map(str, container.get("command", ()))), tuple(map(str, container.get("args", ()))))


def launch(part: ComponentRole, container: Body) -> EngineContainer:
    """The container with what its engine needs in this role."""
    engine = framework(part.graph, part.component)
    launched = EngineContainer(container)
    if part.component.multinode and part.role is not Role.SINGLE:
        if engine == "vllm":
            launched = _vllm(part, container)
        elif engine == "sglang":
            launched = _sglang(part, container)
        elif engine == "trtllm":
            launched = _trtllm(part, container)
    cache = part.component.cache
    if engine == "vllm" and cache is not None:
        root = {"name": "VLLM_CACHE_ROOT", "value": cache.path or _VLLM_CACHE}
        launched = replace(launched, container=_with_env(launched.container, root))
    return launched


def cache_path(graph: Graph, component: GraphComponent) -> str:
    """The mount path of a component's compilation cache; empty if it is not set and has no default."""
    if component.cache is None:
        return ""
    default = _VLLM_CACHE if framework(graph, component) == "vllm" else ""
    return component.cache.path or default


def gpus(component: GraphComponent) -> int:
    """GPUs per pod of a component."""
    return gpus_by_resource(component.main) or component.claimed_gpus


def gpus_by_resource(container: Body) -> int:
    """GPUs of a container by its limits, else by its requests."""
    resources = container.get("resources") or {}
    for side in ("limits", "requests"):
        found = [amount for name, amount in (resources.get(side) or {}).items() if is_gpu(name)]
        if found:
            return int(sum(quantities.parse(amount) for amount in found))
    return 0


def is_gpu(name: str) -> bool:
    """Whether the name of a resource or device class is that of a GPU."""
    return name == "gpu" or name.endswith("/gpu") or "/mig-" in name or name.startswith("gpu.")


def multiprocessing(graph: Graph, component: GraphComponent) -> bool:
    """Whether vLLM spans nodes by itself, without Ray."""
    executor = component.pod_annotations.get(keys.VLLM_EXECUTOR) or graph.own_annotations.get(
        keys.VLLM_EXECUTOR
    )
    if executor:
        return executor.lower() == "mp"
    version = graph.own_annotations.get(keys.ORIGIN_VERSION) or keys.ORIGIN
    major = version.removeprefix("v").partition(".")[0]
    return major.isdecimal() and int(major) >= 1


def spans_by_executor(component: GraphComponent) -> bool:
    """Whether one vLLM engine of the component needs more GPUs than one of its pods has."""
    count = gpus(component)
    return bool(count) and _engine_size(command_of(component.main)) > count


def _engine_size(command: Command) -> int:
    tensor = command_line.flag_value(command, "--tensor-parallel-size", "-tp")
    pipeline = command_line.flag_value(command, "--pipeline-parallel-size", "-pp")
    return (tensor or 1) * (pipeline or 1)


def _vllm(part: ComponentRole, container: Body) -> EngineContainer:
    command, count = command_of(container), gpus(part.component)
    copies = command_line.flag_value(command, "--data-parallel-size", "-dp") or 1
    size = _engine_size(command)
    executor = False
    if count and size > count:
        executor = True
        container = _with_flags(
            part, container, _executor_flags(part), "vllm", in_shell=part.addresses.needs_shell
        )
    elif count and size * copies > count:
        container = _with_flags(
            part, container, _data_parallel_flags(part, command, count // size), "vllm", in_shell=True
        )
    if multiprocessing(part.graph, part.component):
        container = _with_env(container, field_env("VLLM_NIXL_SIDE_CHANNEL_HOST", "status.podIP"))
    if part.role is not Role.WORKER:
        return EngineContainer(container)
    container = _without(container, *_PROBES)
    return _with_leader_wait(part, container) if executor else EngineContainer(container)


def _executor_flags(part: ComponentRole) -> list[str]:
    leader = part.addresses.leader(part.component)
    flags = ["--distributed-executor-backend", "mp", "--nnodes", str(part.component.nodes)]
    flags += ["--master-addr", leader, "--master-port", _PORT, "--node-rank"]
    return [*flags, part.addresses.rank(), "--headless"] if part.role is Role.WORKER else [*flags, "0"]


def _data_parallel_flags(part: ComponentRole, command: Command, local: int) -> list[str]:
    start = f"$(( {local} * {part.addresses.rank()} ))" if part.role is Role.WORKER else "0"
    flags = ["--data-parallel-hybrid-lb"]
    if not command_line.has_flag(command, "--data-parallel-size"):
        flags += ["--data-parallel-size", str(local * part.component.nodes)]
    flags += ["--data-parallel-size-local", str(local), "--data-parallel-start-rank", start]
    flags += ["--data-parallel-address", part.addresses.leader(part.component)]
    return [*flags, "--data-parallel-rpc-port", _RPC_PORT]


def _with_leader_wait(part: ComponentRole, container: Body) -> EngineContainer:
    """A worker with an init container that waits until its leader listens."""
    host = part.addresses.leader_in_shell(part.component)
    script = f'export LEADER_HOST="{host}" LEADER_PORT="{_PORT}" && exec python3 /scripts/wait-for-leader.py'
    volume = "wait-leader-script"
    waiting: Body = {
        "name": "wait-for-leader-mp",
        "command": ["sh", "-c", script],
        "volumeMounts": [{"name": volume, "mountPath": "/scripts", "readOnly": True}],
    }
    if "image" in container:
        waiting["image"] = container["image"]
    scripts = {"name": volume, "configMap": {"name": naming.wait_script(part.graph)}}
    return EngineContainer(container, (scripts,), (waiting,))


def _sglang(part: ComponentRole, container: Body) -> EngineContainer:
    worker = part.role is Role.WORKER
    flags = ["--dist-init-addr", f"{part.addresses.leader(part.component)}:{_PORT}"]
    flags += ["--nnodes", str(part.component.nodes)]
    flags += ["--node-rank", part.addresses.rank() if worker else "0"]
    shell = worker and part.addresses.needs_shell
    container = _with_flags(part, container, flags, "sglang", in_shell=shell)
    return EngineContainer(_without(container, *_PROBES) if worker else container)


def _trtllm(part: ComponentRole, container: Body) -> EngineContainer:
    secret, worker = naming.SSH_SECRET, part.role is Role.WORKER
    container = _with_env(container, {"name": "OMPI_MCA_orte_keep_fqdn_hostnames", "value": "1"})
    mounts = [*container.get("volumeMounts", ()), {"name": secret, "mountPath": "/ssh-pk", "readOnly": True}]
    script = worker_script(_SSH_PORT) if worker else _leader_script(part, container)
    container = {**container, "volumeMounts": mounts, "command": ["/bin/sh", "-c"], "args": [script]}
    if worker:
        container = _without(container, *_PROBES)
        container["readinessProbe"] = {
            "tcpSocket": {"port": _SSH_PORT},
            "initialDelaySeconds": 20,
            "periodSeconds": 20,
            "timeoutSeconds": 5,
            "failureThreshold": 10,
        }
    volume = {"name": secret, "secret": {"secretName": secret, "defaultMode": 0o644}}
    return EngineContainer(container, (volume,))


def _leader_script(part: ComponentRole, container: Body) -> str:
    component, addresses = part.component, part.addresses
    hosts = [addresses.leader(component)]
    hosts += [addresses.worker(component, index) for index in range(component.nodes - 1)]
    return leader_script(
        command_of(container),
        hosts,
        component.nodes * gpus(component),
        [str(each["name"]) for each in container.get("env", ())],
        _SSH_PORT,
        wait_for_names=addresses.dns_is_late,
    )


def _with_flags(part: ComponentRole, container: Body, flags: list[str], name: str, *, in_shell: bool) -> Body:
    in_shell = in_shell and part.role is Role.WORKER
    changed = command_line.with_flags(command_of(container), flags, name, in_shell=in_shell)
    return {**container, "command": list(changed.command), "args": list(changed.args)}


def _with_env(container: Body, entry: dict[str, Any]) -> Body:
    """The container with one more variable, unless the user has set it."""
    env = container.get("env", [])
    if any(each.get("name") == entry["name"] for each in env):
        return container
    return {**container, "env": [*env, entry]}


def _without(container: Body, *names: str) -> Body:
    return {key: value for key, value in container.items() if key not in names}
