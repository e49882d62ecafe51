"""The set as a whole: finalizer, roll-up of its replicas, its end."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from grove.api import marks
from grove.api.cliques import PodClique
from grove.api.intents import Delete, DeleteCollection, Patch, Status
from grove.api.meta import OwnerReference
from grove.api.parts import LastError
from grove.api.pods import Pod
from grove.plan.hashes import generation_hash
from grove.plan.model import Standing
from grove.plan.whole import ORPHAN, Report, plan_end, plan_set
from tests.plan.builders import a_clique, a_pod, a_set, read_set

NOW = 1_800_000_000.0
GOOD = Standing(available=True, updated=True, cliques=1, updated_cliques=1)
CLIQUE = msgspec.json.decode(
    msgspec.json.encode(
        {"metadata": {"name": "wl-0-a", "uid": "uid-clique"}, "spec": a_clique("a:2")["spec"]}
    ),
    type=PodClique,
)
ERROR = LastError("ERR_CREATE_POD", "no room", "2026-01-01T00:00:00Z")


def the_set(replicas: int = 2, *finalizers: str, deleted: bool = False, generation: int = 3):
    found = read_set(a_set("a:2", replicas=replicas))
    meta = replace(
        found.metadata,
        uid="uid-set",
        resource_version="7",
        generation=generation,
        finalizers=finalizers,
        deletion_timestamp="2026-01-01T00:00:00Z" if deleted else None,
    )
    return replace(found, metadata=meta)


def owned(pod: Pod, uid: str) -> Pod:
    owner = OwnerReference("grove.io/v1alpha1", "PodClique", "wl-0-a", uid, controller=True)
    return replace(pod, metadata=replace(pod.metadata, owner_references=(owner,), namespace="ns"))


def status_of(plan):
    (draft,) = plan.drafts
    return draft.desired


def test_the_finalizer_is_added_once_beside_those_of_others() -> None:
    (patch,) = plan_set(the_set(1, "someone/else"), {}, NOW).intents
    assert isinstance(patch, Patch)
    assert patch.body == {
        "metadata": {"resourceVersion": "7", "finalizers": ["someone/else", marks.SET_FINALIZER]}
    }
    assert plan_set(the_set(1, marks.SET_FINALIZER), {}, NOW).intents == ()


def test_nothing_is_reported_before_every_replica_has_been_looked_at() -> None:
    assert plan_set(the_set(2, marks.SET_FINALIZER), {0: Report(3, GOOD)}, NOW).drafts == ()


def test_replicas_are_added_up_and_those_beyond_the_count_do_not_count() -> None:
    reports = {0: Report(3, GOOD), 1: Report(3, replace(GOOD, updated=False)), 2: Report(3, GOOD)}
    status = status_of(plan_set(the_set(2), reports, NOW))
    assert (status.replicas, status.available_replicas, status.updated_replicas) == (2, 2, 1)
    assert (
        status.hpa_pod_selector == "app.kubernetes.io/managed-by=grove-operator,app.kubernetes.io/part-of=wl"
    )
    assert status.current_generation_hash == generation_hash(the_set())
    assert status.update_progress is None, "the first template is no update"


def test_a_generation_counts_as_observed_only_when_all_replicas_have_acted_on_it() -> None:
    late = status_of(plan_set(the_set(2), {0: Report(3, GOOD), 1: Report(2, GOOD)}, NOW))
    failing = status_of(plan_set(the_set(1), {0: Report(3, GOOD, (ERROR,))}, NOW))
    well = status_of(plan_set(the_set(2), {0: Report(3, GOOD), 1: Report(3, GOOD)}, NOW))
    assert (late.observed_generation, failing.observed_generation, well.observed_generation) == (0, 0, 3)


def test_errors_of_replicas_are_told_once_and_cleared_with_success() -> None:
    reports = {0: Report(3, GOOD, (ERROR,)), 1: Report(3, GOOD, (ERROR,))}
    told = status_of(plan_set(the_set(2), reports, NOW))
    assert told.last_errors == (ERROR,)
    after = replace(the_set(1), status=told)
    assert status_of(plan_set(after, {0: Report(3, GOOD)}, NOW)).last_errors == ()


class TestEnd:
    """Deleting a set."""

    def test_pods_go_first_then_the_rest_then_the_set(self) -> None:
        pods = (owned(a_pod("wl-0-a-x"), "uid-clique"),)
        plan = plan_end(the_set(1, marks.SET_FINALIZER, "other", deleted=True), pods, (CLIQUE,))
        fence, *deletions, release = plan.intents
        assert isinstance(fence, Status)
        assert fence.body == {"metadata": {"resourceVersion": the_set(1).metadata.resource_version}}
        assert all(fence.id in deletion.after for deletion in deletions), "it is still this set that ends"
        assert [deletion.kind for deletion in deletions if isinstance(deletion, DeleteCollection)] == [
            "Pod",
            "PodClique",
            "PodCliqueScalingGroup",
            "PodGang",
        ]
        assert all(deletions[0].id in later.after for later in deletions[1:])
        assert isinstance(release, Patch)
        assert release.body["metadata"]["finalizers"] == ["other"]
        assert set(release.after) == {deletion.id for deletion in deletions}

    def test_a_pod_that_only_looks_like_ours_is_spared(self) -> None:
        ours, foreign = owned(a_pod("ours"), "uid-clique"), owned(a_pod("foreign"), "uid-of-another")
        plan = plan_end(the_set(1, marks.SET_FINALIZER, deleted=True), (ours, foreign), (CLIQUE,))
        deleted = [intent.target.name for intent in plan.intents if isinstance(intent, Delete)]
        collections = [intent.kind for intent in plan.intents if isinstance(intent, DeleteCollection)]
        assert deleted == ["ours"]
        assert "Pod" not in collections

    def test_with_cascade_orphan_everything_stays(self) -> None:
        pods = (owned(a_pod("wl-0-a-x"), "uid-clique"),)
        plan = plan_end(the_set(1, ORPHAN, marks.SET_FINALIZER, deleted=True), pods, (CLIQUE,))
        (release,) = plan.intents
        assert isinstance(release, Patch)
        assert release.body["metadata"]["finalizers"] == [ORPHAN]

    def test_a_set_that_we_have_let_go_is_left_alone(self) -> None:
        assert plan_end(the_set(1, "other", deleted=True), (), ()).intents == ()
