"""How a kind is declared: names, printer columns and scale subresource, as its CRD has them."""

from __future__ import annotations

from msgspec import Struct

GROVE = "grove.io"
SCHEDULER = "scheduler.grove.io"
CONFIGURATION = "operator.config.grove.io"
VERSION = "v1alpha1"
CATEGORY = "grove"
"""The category of all our kinds: `kubectl get grove` lists them."""


class Column(Struct, frozen=True):
    """One column of `kubectl get`; a priority of 1 shows it with `-o wide` only."""

    name: str
    type: str
    path: str
    priority: int = 0


class ScaleSubresource(Struct, frozen=True):
    """The path of the label selector that autoscalers read; the counts are always in `replicas`."""

    selector_path: str


class Kind(Struct, frozen=True):
    """One of the kinds that the operator serves, as its CRD declares it."""

    group: str
    name: str
    plural: str
    short_names: tuple[str, ...]
    columns: tuple[Column, ...]
    namespaced: bool = True
    scale: ScaleSubresource | None = None
    version: str = VERSION

    @property
    def api_version(self) -> str:
        """`grove.io/v1alpha1`."""
        return f"{self.group}/{self.version}"

    @property
    def crd_name(self) -> str:
        """`podcliquesets.grove.io`."""
        return f"{self.plural}.{self.group}"


class ForeignKind(Struct, frozen=True):
    """A kind that another project defines: what is needed to watch and to write its objects."""

    group: str
    version: str
    plural: str
    name: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """`scheduling.run.ai/v2alpha2`."""
        return f"{self.group}/{self.version}"

    @property
    def crd_name(self) -> str:
        """`podgroups.scheduling.run.ai`."""
        return f"{self.plural}.{self.group}"


AGE = Column("Age", "date", ".metadata.creationTimestamp")
MIN_BREACHED = Column(
    "MinBreached", "string", '.status.conditions[?(@.type=="MinAvailableBreached")].status', priority=1
)
