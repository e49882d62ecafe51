"""The command lines of the components of the control plane, and their configuration files. Pure.

Authorisation, admission and TLS are those of a normal cluster. Settings for speed differ, and `grove up`
prints them: etcd does not wait for the disk, leader election is off (one instance of each component), the
controllers and the scheduler have higher client limits (with the defaults garbage collection deletes about
20 objects and the scheduler binds 50 pods per second), and autoscalers sync every second instead of every
15 and scale in after 3 seconds instead of 5 minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any

from grove.api.naming import well_known
from grove.local.cluster.pki import Pki
from grove.local.standins.dra.objects import NAME, PREPARED
from grove.local.state_dir import ClusterSettings, Ports, StateDir

LOOPBACK = "127.0.0.1"
SERVICE_RANGE = "127.96.0.0/16"
"""Loopback, as all addresses: the API server reaches a process that listens on the address of a Service."""
POD_RANGE = "10.244.0.0/16"

ETCD_TUNING = ("--unsafe-no-fsync",)
CONTROLLER_MANAGER_TUNING = (
    "--kube-api-qps=500",
    "--kube-api-burst=1000",
    "--concurrent-gc-syncs=30",
    "--horizontal-pod-autoscaler-sync-period=1s",
    "--horizontal-pod-autoscaler-downscale-stabilization=3s",
)
SCHEDULER_TUNING = {"qps": 1000, "burst": 2000}

INIT_CONTAINERS = "init-containers"
DRA_STANDIN = NAME
_HELD = (
    f'if any(.spec.initContainers[]?; .name == "{well_known.INIT_CONTAINER}") and '
    f'(any(.status.initContainerStatuses[]?; .name == "{well_known.INIT_CONTAINER}" and '
    '.state.terminated.exitCode == 0) | not) then "yes" else "no" end'
)

_UNPREPARED = (
    f'if any(.spec.resourceClaims[]?; .name == "{well_known.MNNVL_CLAIM}") and '
    f'.metadata.annotations["{PREPARED}"] != "true" then "yes" else "no" end'
)

PACES: Mapping[str, Mapping[str, int]] = {
    "fast": {"ready": 0, "gone": 0},
    "slow": {"ready": 2000, "gone": 2000},
}


def etcd(binary: Path, state: StateDir, ports: Ports, pki: Pki) -> list[str]:
    client, peer = f"https://{LOOPBACK}:{ports.etcd}", f"http://{LOOPBACK}:{ports.etcd_peer}"
    pair = pki.pair("etcd")
    return [
        str(binary),
        "--name=grove",
        f"--data-dir={state.etcd_data}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=grove={peer}",
        "--client-cert-auth",
        f"--trusted-ca-file={pki.pair('etcd-ca').cert}",
        f"--cert-file={pair.cert}",
        f"--key-file={pair.key}",
        *ETCD_TUNING,
        "--quota-backend-bytes=8589934592",
        "--log-level=warn",
    ]


def apiserver(binary: Path, state: StateDir, settings: ClusterSettings, ports: Ports, pki: Pki) -> list[str]:
    serving, etcd_client = pki.pair("kube-apiserver"), pki.pair("etcd-client")
    proxy, kubelet = pki.pair("front-proxy-client"), pki.pair("kubelet-client")
    command = [
        str(binary),
        f"--bind-address={LOOPBACK}",
        f"--advertise-address={LOOPBACK}",
        f"--secure-port={ports.apiserver}",
        # The endpoints of the `kubernetes` Service may not be loopback addresses, so that it has none.
        "--endpoint-reconciler-type=none",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        f"--tls-cert-file={serving.cert}",
        f"--tls-private-key-file={serving.key}",
        f"--client-ca-file={pki.pair('ca').cert}",
        f"--etcd-servers=https://{LOOPBACK}:{ports.etcd}",
        f"--etcd-cafile={pki.pair('etcd-ca').cert}",
        f"--etcd-certfile={etcd_client.cert}",
        f"--etcd-keyfile={etcd_client.key}",
        # The names of nodes cannot be resolved; all of their kubelets are at one address.
        "--kubelet-preferred-address-types=InternalIP",
        f"--kubelet-client-certificate={kubelet.cert}",
        f"--kubelet-client-key={kubelet.key}",
        f"--requestheader-client-ca-file={pki.pair('front-proxy-ca').cert}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={proxy.cert}",
        f"--proxy-client-key-file={proxy.key}",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={pki.service_account_public_key}",
        f"--service-account-signing-key-file={pki.service_account_key}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement",
        "--allow-privileged=true",
        *_feature_gates(settings),
    ]
    if settings.runtime_config:
        command.append(f"--runtime-config={','.join(settings.runtime_config)}")
    if settings.audit:
        command += [
            f"--audit-policy-file={state.config('audit-policy.json')}",
            f"--audit-log-path={state.audit_log}",
            "--audit-log-maxsize=1024",
        ]
    return command


def controller_manager(
    binary: Path, state: StateDir, settings: ClusterSettings, ports: Ports, pki: Pki
) -> list[str]:
    kubeconfig, authority = state.config("kube-controller-manager.kubeconfig"), pki.pair("ca")
    return [
        str(binary),
        f"--bind-address={LOOPBACK}",
        f"--secure-port={ports.controller_manager}",
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        *_serving(pki),
        f"--root-ca-file={authority.cert}",
        f"--cluster-signing-cert-file={authority.cert}",
        f"--cluster-signing-key-file={authority.key}",
        f"--service-account-private-key-file={pki.service_account_key}",
        "--use-service-account-credentials=true",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        "--leader-elect=false",
        *CONTROLLER_MANAGER_TUNING,
        *_feature_gates(settings),
    ]


def scheduler(binary: Path, state: StateDir, settings: ClusterSettings, ports: Ports, pki: Pki) -> list[str]:
    kubeconfig = state.config("kube-scheduler.kubeconfig")
    return [
        str(binary),
        f"--config={state.config('kube-scheduler.json')}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={ports.scheduler}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        *_serving(pki),
        *_feature_gates(settings),
    ]


def kwok(binary: Path, state: StateDir, ports: Ports) -> list[str]:
    return [
        str(binary),
        "--manage-all-nodes",
        f"--kubeconfig={state.config('kwok.kubeconfig')}",
        f"--config={state.config('kwok.yaml')}",
        f"--server-address={LOOPBACK}:{ports.kwok}",
        f"--node-ip={LOOPBACK}",
        f"--cidr={POD_RANGE}",
    ]


def init_containers(state: StateDir) -> list[str]:
    """The stand-in that runs init containers, which KWOK does not."""
    kubeconfig = state.config(f"{INIT_CONTAINERS}.kubeconfig")
    return [sys.executable, "-m", "grove.local.standins.init_containers", str(kubeconfig)]


def dra_standin(state: StateDir) -> list[str]:
    """The stand-in for the DRA driver of GPU fabrics."""
    return [sys.executable, "-m", "grove.local.standins.dra", str(state.config(f"{DRA_STANDIN}.kubeconfig"))]


def kwok_config(pace: str, init_containers: bool) -> str:
    """KWOK's stages of nodes and pods at a given pace, and whether pods wait for their init containers."""
    stages = Template((Path(__file__).parents[1] / "kwok.yaml").read_text())
    held = _HELD if init_containers else '"no"'
    return stages.substitute(PACES[pace], held=held, unprepared=_UNPREPARED)


def scheduler_config(state: StateDir) -> dict[str, Any]:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {
            "kubeconfig": str(state.config("kube-scheduler.kubeconfig")),
            **SCHEDULER_TUNING,
        },
        "leaderElection": {"leaderElect": False},
    }


def audit_policy() -> dict[str, Any]:
    """The audit policy: one line per finished request, except those of the control plane itself."""
    own = [
        "system:apiserver",
        "system:kube-controller-manager",
        "system:kube-scheduler",
        "kwok",
        INIT_CONTAINERS,
        DRA_STANDIN,
    ]
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            {"level": "None", "users": own},
            {"level": "None", "userGroups": ["system:serviceaccounts:kube-system", "system:nodes"]},
            {"level": "None", "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*"]},
            {"level": "Metadata"},
        ],
    }


def _serving(pki: Pki) -> list[str]:
    pair = pki.pair("serving")
    return [f"--tls-cert-file={pair.cert}", f"--tls-private-key-file={pair.key}"]


def _feature_gates(settings: ClusterSettings) -> list[str]:
    gates = ",".join(f"{name}={str(on).lower()}" for name, on in sorted(settings.feature_gates.items()))
    return [f"--feature-gates={gates}"] if gates else []
