"""Whose the object is that has the name we wanted."""

import pytest

from grove.api.meta import ObjectMeta, OwnerReference
from grove.kube.taken import Holder, holder, name_conflict

GONE = "2026-01-01T00:00:00Z"


def owned(
    uid: str = "u1",
    name: str = "web",
    kind: str = "PodClique",
    version: str = "grove.io/v1alpha1",
    *,
    controller: bool = True,
    leaving: str | None = None,
) -> ObjectMeta:
    owner = OwnerReference(version, kind, name, uid, controller=controller)
    return ObjectMeta(name="pod", owner_references=(owner,), deletion_timestamp=leaving)


NOBODYS = ObjectMeta(name="pod")


@pytest.mark.parametrize(
    ("wanted", "existing", "expected"),
    [
        (owned(), owned(), Holder.OURS),
        (owned(), owned(version="grove.io/v1beta1"), Holder.OURS),
        (owned(), owned(leaving=GONE), Holder.LEAVING),
        (owned(), owned(uid="u0"), Holder.LEAVING),
        (owned(), owned(uid="u0", leaving=GONE), Holder.LEAVING),
        (owned(), owned(name="other"), Holder.FOREIGN),
        (owned(), owned(kind="ReplicaSet"), Holder.FOREIGN),
        (owned(), owned(version="other.io/v1alpha1"), Holder.FOREIGN),
        (owned(), owned(controller=False), Holder.FOREIGN),
        (owned(), owned(name="other", leaving=GONE), Holder.FOREIGN),
        (owned(), NOBODYS, Holder.FOREIGN),
        (NOBODYS, NOBODYS, Holder.OURS),
        (NOBODYS, owned(), Holder.FOREIGN),
    ],
)
def test_identity_is_the_uid_of_the_controller(
    wanted: ObjectMeta, existing: ObjectMeta, expected: Holder
) -> None:
    assert holder(wanted, existing) is expected


def test_a_conflict_says_who_is_in_the_way_and_what_to_do() -> None:
    error = name_conflict("create Pod web-1", owned(kind="ReplicaSet", name="shop"))
    assert str(error) == (
        "create Pod web-1: the name is taken by one that belongs to ReplicaSet shop; "
        "delete that object or rename the workload"
    )
    assert "belongs to nobody" in str(name_conflict("create Pod web-1", NOBODYS))
