"""What is written for a graph of a snapshot file, which has no values of environment variables: its set is
rendered without them, too, and hashes over them are those that the set carries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from grove.api.intents import Create, Intent, Patch
from grove.api.types.podcliqueset import PodCliqueSet
from grove.cluster_state.redaction import with_hashes, without_values
from grove.dynamo import keys
from grove.dynamo.decode.normalize import parse
from grove.dynamo.render import gpu_claims
from grove.dynamo.snapshot import GraphSnapshot
from grove.dynamo.worker_generation import generation
from grove.rules.decode import ObjectFormatError

Body = dict[str, Any]


def redacted_writes(
    intents: Iterable[Intent], before: Body | None, snapshot: GraphSnapshot
) -> Iterator[Intent]:
    """The writes of a graph with its set as the snapshot has it. `before`: the graph of the snapshot."""
    generations = _generations(before, snapshot)
    for intent in intents:
        if isinstance(intent, Create | Patch) and intent.target.kind == PodCliqueSet.KIND.name:
            body = with_hashes(without_values(intent.body), generations)
            # An update writes the spec, and annotates its hash, which a snapshot cannot know.
            yield replace(intent, body={"spec": body["spec"]} if isinstance(intent, Patch) else body)
        else:
            yield intent


def _generations(before: Body | None, snapshot: GraphSnapshot) -> Mapping[str, str]:
    """By the generation of the workers of a stored graph without values, the one that its set has."""
    if before is None or snapshot.workload is None:
        return {}
    cliques = snapshot.workload.spec.template.cliques
    known = next((each.labels[keys.WORKER_HASH] for each in cliques if keys.WORKER_HASH in each.labels), "")
    try:
        graph = parse(before).graph
    except ObjectFormatError:
        return {}
    graph = gpu_claims.with_claimed_gpus(graph, snapshot.context.claim_templates)
    return {generation(graph): known} if known else {}
