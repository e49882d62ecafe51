"""What is known about an object before the whole cluster is read: what its status and those of its parts say.

The nodes and pods of a large cluster take a second to read; these are a few small requests.
"""

from __future__ import annotations

import asyncio
import time

from msgspec import Struct
from msgspec.structs import replace

from grove.explanation.findings import reason_view, state_text, waits, written_reasons
from grove.explanation.model import Explanation
from grove.explanation.operator_lease import Leases, operator_reason
from grove.explanation.reading import SubtreeReader
from grove.explanation.subtree import Subtree, UnknownObject
from grove.kube.client.client import Client
from grove.kube.errors import ApiError, DecodeError


class EarlyAnswer(Struct, frozen=True):
    """The beginning of an explanation."""

    explanation: Explanation
    has_reasons: bool
    """Whether its reasons are those that the complete explanation has. If not, only the state is known."""


async def explain_early(client: Client, written: str, namespace: str, lease: str) -> EarlyAnswer | None:
    """What can be said already about the object that a user has named; None: nothing, also if there is no
    such object, which the reader of the whole cluster reports. Raises KubeError if the server cannot be
    reached."""
    reader = SubtreeReader(client, namespace)
    try:
        tree, leases = await asyncio.gather(reader.read(written), reader.leases(lease))
    except (ApiError, DecodeError, UnknownObject):
        return None
    if reader.skipped:  # the reader of the whole cluster names the objects that cannot be decoded
        return None
    return early_answer(tree, leases, time.time())


def early_answer(tree: Subtree, leases: Leases, now: float) -> EarlyAnswer:
    """What the statuses of an object and of its parts say. Pure."""
    found = Explanation(tree.about, state_text(tree), waits(tree))
    if not found.waits:
        return EarlyAnswer(found, has_reasons=True)
    leads = operator_reason(leases, tree.workload, now) is None
    reasons = written_reasons(tree) if leads else None
    if reasons is None:
        return EarlyAnswer(found, has_reasons=False)
    views = tuple(reason_view(each, tree.about.namespace) for each in reasons)
    return EarlyAnswer(replace(found, reasons=views), has_reasons=True)
