"""Options that several commands have, with the names that kubectl gives them.

A command takes those that apply to it, as keyword parameters with these types; `grove.cli.scope` checks them
and loads the connection, `grove.cli.structured_output` writes the formats that are not text.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

Output = Literal["table", "wide", "json", "yaml", "name"]
"""`table` is text for people, also where it is a tree; `wide` is the same with nothing left out or cut."""

KubeconfigOption = Annotated[
    Path | None, Parameter(help="Path of a kubeconfig; default: KUBECONFIG or ~/.kube/config.")
]
ContextOption = Annotated[str | None, Parameter(help="Context of the kubeconfig; default: its current one.")]
NamespaceOption = Annotated[str | None, Parameter(alias="-n", help="Namespace; default: the context's.")]
AllOption = Annotated[bool, Parameter(alias="-A", negative=(), help="All namespaces.")]
SelectorOption = Annotated[
    str | None, Parameter(alias="-l", help="Only PodCliqueSets with these labels, for example app=chat,!old.")
]
OutputOption = Annotated[
    Output,
    Parameter(alias="-o", help="Format: table, wide (nothing is left out or cut), json, yaml or name."),
]
StructuredOption = Annotated[Literal["table", "json", "yaml"], Parameter(alias="-o", help="Format.")]
"""Of commands that do something or report on it: they list no objects that could be wide or named."""
WatchOption = Annotated[
    bool, Parameter(alias="-w", negative=(), help="Show changes as they happen, until interrupted.")
]
LeaseOption = Annotated[str, Parameter(help="Name of the operator's Lease.")]
ExitCodeOption = Annotated[
    bool, Parameter(negative=(), help="End with exit code 2 if something waits or is wrong.")
]
SnapshotOption = Annotated[
    Path | None, Parameter(help="A file of grove snapshot, to be read instead of the cluster.")
]
