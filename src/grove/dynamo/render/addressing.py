"""Host names and ranks of the pods of a multi-node replica, per backend."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from grove.dynamo import naming
from grove.dynamo.graph import GraphComponent


class Role(StrEnum):
    """The role of a pod in its replica."""

    SINGLE = ""
    LEADER = naming.LEADER
    WORKER = naming.WORKER


class Addresses(Protocol):
    """Host names and ranks with one backend."""

    needs_shell: bool
    """Whether a shell must compute a worker's rank."""
    dns_is_late: bool
    """Whether host names of workers may not resolve yet when a leader starts."""

    def leader(self, component: GraphComponent) -> str:
        """The leader's host name, with variables that the kubelet expands."""
        ...

    def leader_in_shell(self, component: GraphComponent) -> str:
        """The leader's host name, with variables that a shell expands."""
        ...

    def worker(self, component: GraphComponent, index: int) -> str:
        """The host name of a worker, counted from 0."""
        ...

    def rank(self) -> str:
        """A worker's rank; the leader has rank 0."""
        ...


class GroveAddresses:
    """Addresses with the Grove backend."""

    needs_shell = True
    dns_is_late = False

    def leader(self, component: GraphComponent) -> str:
        return self._host(component, f"{naming.LEADER}-0")

    def leader_in_shell(self, component: GraphComponent) -> str:
        return self.leader(component).replace("$(", "${").replace(")", "}")

    def worker(self, component: GraphComponent, index: int) -> str:
        return self._host(component, f"{naming.WORKER}-{index}")

    def rank(self) -> str:
        return "$((GROVE_PCLQ_POD_INDEX + 1))"

    def _host(self, component: GraphComponent, pod: str) -> str:
        return f"$(GROVE_PCSG_NAME)-$(GROVE_PCSG_INDEX)-{component.lower}-{pod}.$(GROVE_HEADLESS_SERVICE)"


class LeaderWorkerAddresses:
    """Addresses with LeaderWorkerSet."""

    needs_shell = False
    dns_is_late = True

    def leader(self, component: GraphComponent) -> str:  # noqa: ARG002 - the protocol's
        return "$(LWS_LEADER_ADDRESS)"

    def leader_in_shell(self, component: GraphComponent) -> str:  # noqa: ARG002 - the protocol's
        return "${LWS_LEADER_ADDRESS}"

    def worker(self, component: GraphComponent, index: int) -> str:  # noqa: ARG002 - the protocol's
        return f'$(echo "$LWS_LEADER_ADDRESS" | sed "s/\\./-{index + 1}./")'

    def rank(self) -> str:
        return "$(LWS_WORKER_INDEX)"
