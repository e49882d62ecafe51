"""The operator's configuration file. Unknown keys are ignored, so that a file may serve several versions."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from msgspec import field

from grove.api.types.kind import CONFIGURATION, VERSION
from grove.api.wire import Duration, Wire, always, defaulted

DEFAULT_SCHEDULER = "default-scheduler"
PODS_PER_SET = 50_000
TOPOLOGY_DOMAINS = ("region", "zone", "datacenter", "block", "rack", "host", "numa")
"""The conventional names of topology domains, broad to narrow."""


class LogLevel(StrEnum):
    """How much is logged."""

    DEBUG = "debug"
    INFO = "info"
    ERROR = "error"


class LogFormat(StrEnum):
    """For machines or for people."""

    JSON = "json"
    TEXT = "text"


class CertProvisionMode(StrEnum):
    """Who provides the webhooks' certificates."""

    AUTO = "auto"
    MANUAL = "manual"


class OnUnsupported(StrEnum):
    """What becomes of a workload with constraints that its scheduler cannot keep."""

    REFUSE = "refuse"
    WARN = "warn"


class ClientConnection(Wire, frozen=True):
    """How the operator speaks to the API server."""

    qps: float = defaulted(100.0)
    """Requests a second; kept for files of upstream, as our concurrency adapts itself."""
    burst: int = defaulted(120)
    """Requests at once; kept like `qps`. Not negative."""
    content_type: str = ""
    """Kept for files of upstream."""
    accept_content_types: str = ""
    """Kept for files of upstream."""


class LeaderElection(Wire, frozen=True):
    """Which of several operator pods acts. Only looked at when enabled."""

    enabled: bool = defaulted(False)
    """Whether to elect one at all."""
    lease_duration: Duration = defaulted("15s")
    """How long a leader that has fallen silent is waited for; longer than `renewDeadline`."""
    renew_deadline: Duration = defaulted("10s")
    """How long a leader tries to renew before it steps down."""
    retry_period: Duration = defaulted("2s")
    """How long to wait between tries."""
    resource_lock: str = defaulted("leases")
    """The kind of lock."""
    resource_name: str = defaulted("grove-operator-leader-election")
    """The name of the lock."""
    resource_namespace: str = ""
    """The namespace of the lock; the operator's own without it."""


class WebhookServer(Wire, frozen=True):
    """Where the admission webhooks listen, and with which certificate."""

    port: int = defaulted(2750)
    """Port."""
    bind_address: str = ""
    """Address; all of them without it."""
    server_cert_dir: str = defaulted("/etc/grove-operator/webhook-certs")
    """Where certificates are found (`manual`)."""
    secret_name: str = defaulted("grove-webhook-server-cert")
    """The Secret that keeps certificates (`auto`)."""
    cert_provision_mode: CertProvisionMode = defaulted(CertProvisionMode.AUTO)
    """`auto`: the operator makes and renews them. `manual`: somebody else does."""


class HealthServer(Wire, frozen=True):
    """Where the probes `/healthz` and `/readyz` are answered."""

    port: int = defaulted(2751)
    """Port."""
    bind_address: str = ""
    """Address; all of them without it."""


class MetricsServer(Wire, frozen=True):
    """Where `/metrics` is served."""

    port: int = defaulted(2752)
    """Port."""
    bind_address: str = ""
    """Address; all of them without it."""


class Servers(Wire, frozen=True):
    """Where the operator listens."""

    webhooks: WebhookServer = WebhookServer()
    """The admission webhooks."""
    health_probes: HealthServer = HealthServer()
    """The probes."""
    metrics: MetricsServer = MetricsServer()
    """The metrics."""


class Debugging(Wire, frozen=True):
    """Looking inside a running operator."""

    enable_profiling: bool = defaulted(False)
    """Whether profiles are served."""
    pprof_bind_host: str = defaulted("127.0.0.1")
    """Address for them."""
    pprof_bind_port: int = defaulted(2753)
    """Port for them."""


class Syncs(Wire, frozen=True):
    """How many objects of a kind are worked on at once. Kept for files of upstream; more than 0."""

    concurrent_syncs: int = defaulted(10)
    """How many."""


class FewerSyncs(Syncs, frozen=True):
    """The same for kinds of which there are fewer."""

    concurrent_syncs: int = defaulted(5)
    """How many."""


class Controllers(Wire, frozen=True):
    """How many objects are worked on at once, by kind."""

    pod_clique_set: Syncs = Syncs()
    """PodCliqueSets."""
    pod_clique: Syncs = Syncs()
    """PodCliques."""
    pod_clique_scaling_group: FewerSyncs = FewerSyncs()
    """PodCliqueScalingGroups."""
    pod_gang: FewerSyncs = FewerSyncs()
    """PodGangs."""


class Authorizer(Wire, frozen=True):
    """Protects what the operator manages from other hands."""

    enabled: bool = defaulted(False)
    """Whether to protect."""
    exempt_service_account_user_names: tuple[str, ...] = ()
    """Users that may change managed objects all the same."""


class TopologyAwareScheduling(Wire, frozen=True):
    """Topology constraints."""

    enabled: bool = defaulted(False)
    """Whether workloads may carry them."""


class Network(Wire, frozen=True):
    """Multi-node NVLink."""

    auto_mnnvl_enabled: bool = defaulted(False, "autoMNNVLEnabled")
    """Whether GPU workloads get a ComputeDomain for each replica by themselves."""
    auto_mnnvl_detect_dra: bool = defaulted(False, "autoMNNVLDetectDRA")
    """Whether GPUs that are asked for by claims only count as well."""
    explicit_compute_domains: bool = defaulted(True)
    """Whether cliques may ask for a ComputeDomain by annotation."""
    protect_compute_domains: bool = defaulted(False)
    """Whether deleting a managed ComputeDomain by hand is refused."""


class SchedulerProfile(Wire, frozen=True):
    """A scheduler backend that workloads may use."""

    name: str
    """The backend, which is also the pods' `schedulerName`."""
    config: dict[str, object] = field(default_factory=dict)
    """What the backend itself wants to know."""
    unsupported_constraints: OnUnsupported = defaulted(OnUnsupported.REFUSE)
    """Topology constraints that the backend cannot keep: `refuse` them, or `warn` and ignore them."""


class Scheduler(Wire, frozen=True):
    """The scheduler backends."""

    profiles: tuple[SchedulerProfile, ...] = ()
    """Backends in use; `default-scheduler` always is."""
    default_profile_name: str = defaulted(DEFAULT_SCHEDULER)
    """The backend of pods that name no scheduler."""

    @property
    def enabled_profiles(self) -> tuple[SchedulerProfile, ...]:
        """The profiles, with the default scheduler's appended if nobody listed it."""
        if any(profile.name == DEFAULT_SCHEDULER for profile in self.profiles):
            return self.profiles
        return (*self.profiles, SchedulerProfile(DEFAULT_SCHEDULER))


class Limits(Wire, frozen=True):
    """How large a workload may be."""

    pods_per_set: int = defaulted(PODS_PER_SET)
    """The most pods that one PodCliqueSet may ask for; a PodClique without pods counts as one. At least 1."""


class TopologyMode(StrEnum):
    """How constraints are enforced where Grove does not run a deployment."""

    NONE = ""
    KUEUE = "kueue"
    AFFINITY = "affinity"


class DynamoTopology(Wire, frozen=True):
    """Topology constraints of DynamoGraphDeployments."""

    allowed_domains: tuple[str, ...] = defaulted(TOPOLOGY_DOMAINS)
    """Domains that a deployment may name, broad to narrow; empty: any."""
    domain_to_label_mapping: dict[str, str] = field(default_factory=dict)
    """Node labels for backends that know no domains."""
    default_topology_name: str = ""
    """The topology of deployments that name none."""
    mode: TopologyMode = TopologyMode.NONE
    """How constraints are enforced where Grove does not run a deployment: `kueue`, by Kueue's topology-aware
    scheduling; `affinity`, by pod affinity. Empty: they are refused there."""
    queue_name: str = ""
    """Kueue's queue of deployments that name none."""


class Dynamo(Wire, frozen=True):
    """DynamoGraphDeployments."""

    enabled: bool = defaulted(False)
    """Whether the operator serves them."""
    without_grove: bool = defaulted(False)
    """Whether deployments may decline Grove, by the annotation `nvidia.com/enable-grove: "false"`, and become
    LeaderWorkerSets and Deployments."""
    image_pull_secret_discovery: bool = defaulted(True)
    """Whether Secrets are looked for that their images can be pulled with. Takes the right to read Secrets;
    without it, users name theirs in the pod templates."""
    topology_aware_scheduling: DynamoTopology = DynamoTopology()
    """Their topology constraints."""


class OperatorConfiguration(Wire, frozen=True):
    """The file that the operator reads at start. The chart writes it from `config.*` of its values."""

    KIND: ClassVar = "OperatorConfiguration"

    api_version: str = always(f"{CONFIGURATION}/{VERSION}")
    kind: str = always(KIND)
    runtime_client_connection: ClientConnection = ClientConnection()
    """How the operator speaks to the API server."""
    leader_election: LeaderElection = LeaderElection()
    """Which of several operator pods acts."""
    server: Servers = Servers()
    """Where the operator listens."""
    debugging: Debugging | None = None
    """Looking inside a running operator."""
    controllers: Controllers = Controllers()
    """How many objects are worked on at once."""
    log_level: LogLevel = defaulted(LogLevel.INFO)
    """How much is logged."""
    log_format: LogFormat = defaulted(LogFormat.JSON)
    """For machines or for people."""
    authorizer: Authorizer = Authorizer()
    """Protects what the operator manages."""
    topology_aware_scheduling: TopologyAwareScheduling = TopologyAwareScheduling()
    """Topology constraints."""
    network: Network = Network()
    """Multi-node NVLink."""
    fabrics: tuple[str, ...] = defaulted(("nvidia",))
    """Vendors whose fabric domains are managed."""
    scheduler: Scheduler = Scheduler()
    """The scheduler backends."""
    dynamo: Dynamo = Dynamo()
    """DynamoGraphDeployments."""
    limits: Limits = Limits()
    """How large a workload may be."""
