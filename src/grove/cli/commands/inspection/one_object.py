"""Shared by commands about one object: reading it, and what to say if that is not possible."""

from __future__ import annotations

import sys

from grove.cli.printable import printable
from grove.cluster_state.model import UnreadKind, unread_lines
from grove.explanation.model import ObjectRef
from grove.explanation.reading import RESOURCES, MissingObject, SubtreeReader, explain_missing
from grove.explanation.subtree import Subtree, set_name_of
from grove.kube.client.client import Client
from grove.kube.client.resource import Resource


async def read_object(client: Client, reader: SubtreeReader, written: str) -> Subtree:
    """The object that a user has named, and what belongs to it. Raises KubeError with a line for users."""
    try:
        return await reader.read(written)
    except MissingObject as missing:
        raise await explain_missing(client, written, reader.namespace, missing) from None


async def find_object(
    client: Client, reader: SubtreeReader, written: str
) -> tuple[ObjectRef, Resource, str | None]:
    """The object that a user has named, its resource, and the set that it is or belongs to. Raises KubeError
    with a line for users."""
    try:
        objects, about = await reader.find(written)
    except MissingObject as missing:
        raise await explain_missing(client, written, reader.namespace, missing) from None
    return about, RESOURCES[about.kind], set_name_of(objects, about)


def set_name(tree: Subtree) -> str | None:
    """The set that an object belongs to; None for a graph without one."""
    return tree.workload.metadata.name if tree.workload is not None else None


def report_skipped(reader: SubtreeReader) -> None:
    """Say on stderr which objects could not be decoded."""
    unread = [
        UnreadKind(resource.label, f"cannot be decoded: {'/'.join(filter(None, each.key))}")
        for resource, found in reader.skipped.items()
        for each in found
    ]
    for line in unread_lines(unread):
        sys.stderr.write(printable(f"grove: not seen: {line}") + "\n")
