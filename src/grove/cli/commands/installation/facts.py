"""What is known of an installation. Data only: `reading` fills it, the checks judge it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from grove.api.configuration.types import OperatorConfiguration
from grove.api.meta import ObjectMeta
from grove.kube.leader.lease import Lease

Body = dict[str, Any]


class Unreadable(Struct, frozen=True):
    """Something that could not be read, and why."""

    reason: str


class Container(Struct, frozen=True):
    """A container of the operator."""

    name: str = ""
    image: str = ""


class _ConfigMapName(Struct, frozen=True):
    name: str = ""


class Volume(Struct, frozen=True, rename="camel"):
    """A volume of the operator; its configuration is a ConfigMap."""

    name: str = ""
    config_map: _ConfigMapName | None = None


class _PodSpec(Struct, frozen=True):
    containers: tuple[Container, ...] = ()
    volumes: tuple[Volume, ...] = ()


class _PodTemplate(Struct, frozen=True):
    spec: _PodSpec = _PodSpec()


class _DeploymentSpec(Struct, frozen=True):
    replicas: int = 1
    template: _PodTemplate = _PodTemplate()


class _DeploymentStatus(Struct, frozen=True, rename="camel"):
    ready_replicas: int = 0


class OperatorDeployment(Struct, frozen=True):
    """A Deployment of the chart: of the operator, or of the admission webhooks."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _DeploymentSpec = _DeploymentSpec()
    status: _DeploymentStatus = _DeploymentStatus()

    @property
    def is_admission(self) -> bool:
        """Whether its pods serve the admission webhooks, and not the operator."""
        return self.metadata.labels.get("app.kubernetes.io/component") == "admission"

    @property
    def container(self) -> Container:
        """The operator's container."""
        return next(iter(self.spec.template.spec.containers), Container())

    @property
    def config_map(self) -> str:
        """The name of the ConfigMap with the configuration; empty if there is none."""
        volumes = (each.config_map for each in self.spec.template.spec.volumes if each.name == "config")
        return next((each.name for each in volumes if each is not None), "")


class Installation(Struct, frozen=True, kw_only=True):
    """An installation, as the API server shows it to one user."""

    version: str
    """The version of this program."""
    server: str
    server_version: str
    """Of Kubernetes, such as `v1.37.1`; empty if it is not known."""
    definitions: Mapping[str, Body | None] | Unreadable
    """By name, the CRDs of our kinds; None: it does not exist."""
    leases: tuple[Lease, ...] | Unreadable
    deployments: tuple[OperatorDeployment, ...] | Unreadable
    """Of the operator, and of the admission webhooks if they have one of their own."""
    configuration: OperatorConfiguration | Unreadable
    webhooks: Mapping[str, Body | None] | Unreadable
    """By name, the webhook configurations."""
    review: str | Unreadable
    """How the API server refuses a set that breaks a rule; empty if it accepts the set. Nothing is stored."""
    served: Mapping[str, tuple[str, ...]] | Unreadable
    """By API group of other projects and of Kubernetes, the versions that are served."""
    gates: Mapping[str, bool] | Unreadable
    """Feature gates of the API server."""
    now: float
