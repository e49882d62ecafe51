"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

KubeconfigOption = Annotated[
    Path | None, Parameter(help="Path of a kubeconfig; default: KUBECONFIG or ~/.kube/config.")
]
ContextOption = Annotated[str | None, Parameter(help="Context of the kubeconfig; default: its current one.")]
NamespaceOption = Annotated[str | None, Parameter(alias="-n", help="Namespace; default: the context's.")]
AllOption = Annotated[bool, Parameter(alias="-A", negative=(), help="All namespaces.")]
OutputOption = Annotated[Literal["text", "json"], Parameter(alias="-o", help="Output format.")]
Output = Literal["text", "json", "yaml"]
StructuredOption = Annotated[Output, Parameter(alias="-o", help="Output format.")]
SnapshotOption = Annotated[
    Path | None, Parameter(help="A file of grove snapshot, to be read instead of the cluster.")
]
