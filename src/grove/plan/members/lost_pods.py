"""Lost pods: they left the cache without having terminated, because they were force-deleted or because their
labels were removed. The caches select by labels, so a pod without them seems to be gone.

A lost pod that a gang still refers to is patched by its name and UID before it counts as deleted: if it still
exists, it gets its labels back, and the next plan sees it.
"""

from __future__ import annotations

from grove.api.intents import Patch
from grove.api.naming import labels
from grove.api.types.pod import Pod
from grove.plan.writes.builders import patch_pod_metadata


def restore_labels(pod: Pod) -> Patch:
    """Restores the last known labels of a lost pod. The patch carries the UID, so it fits no other pod."""
    known = {key: value for key in labels.SELECTORS if (value := pod.metadata.labels.get(key)) is not None}
    return patch_pod_metadata(pod, {"labels": known})
