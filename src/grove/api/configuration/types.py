"""The operator's configuration file. Keys of other versions are ignored: one file can serve several."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from msgspec import field

from grove.api.naming.well_known import OPERATOR_LEASE
from grove.api.types.kind import CONFIGURATION, VERSION
from grove.api.wire import Duration, Wire, always, defaulted

DEFAULT_SCHEDULER = "default-scheduler"
PODS_PER_SET = 50_000
TOPOLOGY_DOMAINS = ("region", "zone", "datacenter", "block", "rack", "host", "numa")
"""The conventional names of topology domains, broad to narrow."""


class LogLevel(StrEnum):
    """The log level."""

    DEBUG = "debug"
    INFO = "info"
    ERROR = "error"


class LogFormat(StrEnum):
    """The log format."""

    JSON = "json"
    TEXT = "text"


class CertProvisionMode(StrEnum):
    """Where the certificates of the webhooks come from."""

    AUTO = "auto"
    MANUAL = "manual"


class OnUnsupported(StrEnum):
    """Whether a workload with topology constraints that its scheduler cannot keep is rejected."""

    REFUSE = "refuse"
    WARN = "warn"


class DomainPacking(StrEnum):
    """Whether the pods of a fabric domain are placed in one partition of the fabric."""

    OFF = "off"
    PREFERRED = "preferred"
    REQUIRED = "required"


class OnMissingDriver(StrEnum):
    """Whether the operator starts with automatic MNNVL on a cluster that lacks what it needs."""

    FAIL = "fail"
    WARN = "warn"


class ClientConnection(Wire, frozen=True):
    """The operator's connection to the API server."""

    qps: float = defaulted(100.0)
    """Accepted for compatibility with upstream's files and not used: concurrency adapts to the server."""
    burst: int = defaulted(120)
    """Accepted for compatibility with upstream's files and not used. Must not be negative."""
    content_type: str = ""
    """Accepted for compatibility with upstream's files and not used."""
    accept_content_types: str = ""
    """Accepted for compatibility with upstream's files and not used."""


class LeaderElection(Wire, frozen=True):
    """Leader election between several operator pods. The other keys are checked only if it is enabled."""

    enabled: bool = defaulted(False)
    """Whether a leader is elected."""
    lease_duration: Duration = defaulted("15s")
    """How long other pods wait for a leader that does not renew its lease; longer than `renewDeadline`."""
    renew_deadline: Duration = defaulted("10s")
    """How long a leader tries to renew its lease before it stops; longer than `retryPeriod`."""
    retry_period: Duration = defaulted("2s")
    """How long to wait between two attempts."""
    resource_lock: str = defaulted("leases")
    """The kind of lock; only `leases`."""
    resource_name: str = defaulted(OPERATOR_LEASE)
    """The name of the Lease."""
    resource_namespace: str = ""
    """The namespace of the Lease; defaults to the operator's namespace."""


class WebhookServer(Wire, frozen=True):
    """The address and the certificate of the admission webhooks."""

    port: int = defaulted(2750)
    """The port to listen on."""
    bind_address: str = ""
    """The address to listen on; empty: all addresses."""
    server_cert_dir: str = defaulted("/etc/grove-operator/webhook-certs")
    """The directory of the certificate files, with `certProvisionMode: manual`."""
    secret_name: str = defaulted("grove-webhook-server-cert")
    """The Secret in which the operator keeps the certificate, with `certProvisionMode: auto`."""
    cert_provision_mode: CertProvisionMode = defaulted(CertProvisionMode.AUTO)
    """`auto`: the operator creates and renews the certificate. `manual`: it is provided as files."""


class HealthServer(Wire, frozen=True):
    """The address of the probes `/healthz` and `/readyz`."""

    port: int = defaulted(2751)
    """The port to listen on."""
    bind_address: str = ""
    """The address to listen on; empty: all addresses."""


class MetricsServer(Wire, frozen=True):
    """The address of `/metrics`."""

    port: int = defaulted(2752)
    """The port to listen on."""
    bind_address: str = ""
    """The address to listen on; empty: all addresses."""
    secure: bool = defaulted(False)
    """Whether metrics are served over HTTPS, with a self-signed certificate, and only to subjects whose token
    the API server accepts and that may `get` the path `/metrics`."""


class Servers(Wire, frozen=True):
    """The servers of the operator."""

    webhooks: WebhookServer = WebhookServer()
    """The admission webhooks."""
    health_probes: HealthServer = HealthServer()
    """The health probes."""
    metrics: MetricsServer = MetricsServer()
    """The metrics."""


class Debugging(Wire, frozen=True):
    """The debug server of a running operator."""

    enable_profiling: bool = defaulted(False)
    """Whether the debug server, with `/debug/tasks`, is started."""
    pprof_bind_host: str = defaulted("127.0.0.1")
    """The address that the debug server listens on."""
    pprof_bind_port: int = defaulted(2753)
    """The port that the debug server listens on."""


class Syncs(Wire, frozen=True):
    """How many objects of a kind are reconciled at once."""

    concurrent_syncs: int = defaulted(10)
    """Accepted for compatibility with upstream's files and not used. Must be greater than 0."""


class FewerSyncs(Syncs, frozen=True):
    """How many objects of a kind are reconciled at once, for kinds with fewer objects."""

    concurrent_syncs: int = defaulted(5)
    """Accepted for compatibility with upstream's files and not used. Must be greater than 0."""


class Controllers(Wire, frozen=True):
    """How many objects are reconciled at once, by kind."""

    pod_clique_set: Syncs = Syncs()
    """PodCliqueSets."""
    pod_clique: Syncs = Syncs()
    """PodCliques."""
    pod_clique_scaling_group: FewerSyncs = FewerSyncs()
    """PodCliqueScalingGroups."""
    pod_gang: FewerSyncs = FewerSyncs()
    """PodGangs."""


class Authorizer(Wire, frozen=True):
    """Rejects changes to objects that the operator manages, except from the operator and exempt users."""

    enabled: bool = defaulted(False)
    """Whether managed objects are protected."""
    exempt_service_account_user_names: tuple[str, ...] = ()
    """The user names that may change managed objects all the same."""


class TopologyAwareScheduling(Wire, frozen=True):
    """Topology constraints of workloads."""

    enabled: bool = defaulted(False)
    """Whether PodCliqueSets may have topology constraints."""


class StartOrder(Wire, frozen=True):
    """The start order of the cliques of a set."""

    enabled: bool = defaulted(True)
    """Whether sets may have a start order. It needs the right to create ServiceAccounts, Roles and Secrets in
    the namespaces of workloads."""


class Network(Wire, frozen=True):
    """Multi-node NVLink (MNNVL) and ComputeDomains."""

    auto_mnnvl_enabled: bool = defaulted(False, "autoMNNVLEnabled")
    """Whether each replica of a set with GPUs gets a ComputeDomain automatically."""
    auto_mnnvl_preflight: OnMissingDriver = defaulted(OnMissingDriver.FAIL, "autoMNNVLPreflight")
    """What to do at the start if automatic MNNVL is enabled and the driver's CRD is not served: `fail`, which
    also takes admission away from all other sets, or `warn`; sets with GPUs then wait for the driver."""
    auto_mnnvl_detect_dra: bool = defaulted(False, "autoMNNVLDetectDRA")
    """Whether GPUs that are requested only through ResourceClaims count as well."""
    explicit_compute_domains: bool = defaulted(True)
    """Whether cliques may request a ComputeDomain by annotation."""
    protect_compute_domains: bool = defaulted(False)
    """Whether users are kept from deleting ComputeDomains that the operator manages."""
    pack_domains: DomainPacking = defaulted(DomainPacking.PREFERRED)
    """Whether the pods of a ComputeDomain are placed in one NVLink partition: `off`; `preferred`, if there is
    room in one; or `required`: otherwise they wait. Sets may choose another value by annotation."""


class SchedulerProfile(Wire, frozen=True):
    """A scheduler backend that workloads may use."""

    name: str
    """The name of the backend, which is also the `schedulerName` of its pods."""
    config: dict[str, object] = field(default_factory=dict)
    """The configuration of the backend itself; that of `default-scheduler` is a DefaultSchedulerConfig."""
    unsupported_constraints: OnUnsupported = defaulted(OnUnsupported.REFUSE)
    """What to do with topology constraints that the backend cannot keep: `refuse`, or `warn` and ignore."""


class Scheduler(Wire, frozen=True):
    """The scheduler backends."""

    profiles: tuple[SchedulerProfile, ...] = ()
    """The backends in use; `default-scheduler` always is one of them."""
    default_profile_name: str = defaulted(DEFAULT_SCHEDULER)
    """The backend of pods that name no scheduler."""

    @property
    def enabled_profiles(self) -> tuple[SchedulerProfile, ...]:
        """The profiles, with that of the default scheduler appended if it is not listed."""
        if any(profile.name == DEFAULT_SCHEDULER for profile in self.profiles):
            return self.profiles
        return (*self.profiles, SchedulerProfile(DEFAULT_SCHEDULER))


class Limits(Wire, frozen=True):
    """Limits on the size of workloads."""

    pods_per_set: int = defaulted(PODS_PER_SET)
    """The maximum number of pods of one PodCliqueSet; a PodClique without pods counts as one. At least 1."""


class TopologyMode(StrEnum):
    """How topology constraints are enforced for deployments that do not use Grove."""

    NONE = ""
    KUEUE = "kueue"
    AFFINITY = "affinity"


class DynamoTopology(Wire, frozen=True):
    """Topology constraints of DynamoGraphDeployments."""

    allowed_domains: tuple[str, ...] = defaulted(TOPOLOGY_DOMAINS)
    """The topology domains that a deployment may name, from broad to narrow; empty: any."""
    domain_to_label_mapping: dict[str, str] = field(default_factory=dict)
    """The node label of each domain, for deployments that do not use Grove."""
    default_topology_name: str = ""
    """The topology of deployments that do not name one."""
    mode: TopologyMode = TopologyMode.NONE
    """How topology constraints are enforced for deployments that do not use Grove: `kueue`, by Kueue's
    topology-aware scheduling; `affinity`, by pod affinity. Empty: such constraints are rejected."""
    queue_name: str = ""
    """The Kueue queue of deployments that do not name one."""


class Dynamo(Wire, frozen=True):
    """DynamoGraphDeployments: inference graphs of NVIDIA Dynamo."""

    enabled: bool = defaulted(False)
    """Whether the operator reconciles DynamoGraphDeployments."""
    without_grove: bool = defaulted(False)
    """Whether the annotation `nvidia.com/enable-grove: "false"` makes the operator create LeaderWorkerSets
    and Deployments for a deployment, instead of a PodCliqueSet."""
    image_pull_secret_discovery: bool = defaulted(False)
    """Whether the operator finds image pull secrets for the registries of the images. Needs the right to read
    all Secrets; without it, users name the secrets in the pod templates."""
    topology_aware_scheduling: DynamoTopology = DynamoTopology()
    """Topology constraints of DynamoGraphDeployments."""


class OperatorConfiguration(Wire, frozen=True):
    """The file that the operator reads at start. The chart renders it from `config` of its values."""

    KIND: ClassVar = "OperatorConfiguration"

    api_version: str = always(f"{CONFIGURATION}/{VERSION}")
    kind: str = always(KIND)
    namespaces: tuple[str, ...] = ()
    """The namespaces whose workloads are reconciled, where the operator has no rights in others; empty: all.
    The chart sets it from its value `namespaces`."""
    runtime_client_connection: ClientConnection = ClientConnection()
    """The operator's connection to the API server."""
    leader_election: LeaderElection = LeaderElection()
    """Leader election between several operator pods."""
    server: Servers = Servers()
    """The servers of the operator."""
    debugging: Debugging | None = None
    """The debug server of a running operator."""
    controllers: Controllers = Controllers()
    """How many objects are reconciled at once."""
    log_level: LogLevel = defaulted(LogLevel.INFO)
    """The log level: `debug`, `info` or `error`."""
    log_format: LogFormat = defaulted(LogFormat.JSON)
    """The log format: `json` for machines, `text` for people."""
    authorizer: Authorizer = Authorizer()
    """Protection of the objects that the operator manages."""
    topology_aware_scheduling: TopologyAwareScheduling = TopologyAwareScheduling()
    """Topology constraints of workloads."""
    start_order: StartOrder = StartOrder()
    """The start order of the cliques of a set."""
    network: Network = Network()
    """Multi-node NVLink (MNNVL) and ComputeDomains."""
    fabrics: tuple[str, ...] = defaulted(("nvidia",))
    """The vendors whose fabric domains are managed."""
    scheduler: Scheduler = Scheduler()
    """The scheduler backends."""
    dynamo: Dynamo = Dynamo()
    """DynamoGraphDeployments: inference graphs of NVIDIA Dynamo."""
    limits: Limits = Limits()
    """Limits on the size of workloads."""
