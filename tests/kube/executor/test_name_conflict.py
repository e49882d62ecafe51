"""Whose the object is that has the name we wanted."""

import pytest

from grove.api.meta import ObjectMeta, OwnerReference
from grove.kube.executor.name_conflict import NameHolder, name_conflict_error, name_holder

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
        (owned(), owned(), NameHolder.OWN),
        (owned(), owned(version="grove.io/v1beta1"), NameHolder.OWN),
        (owned(), owned(leaving=GONE), NameHolder.TERMINATING),
        (owned(), owned(uid="u0"), NameHolder.TERMINATING),
        (owned(), owned(uid="u0", leaving=GONE), NameHolder.TERMINATING),
        (owned(), owned(name="other"), NameHolder.OTHER),
        (owned(), owned(kind="ReplicaSet"), NameHolder.OTHER),
        (owned(), owned(version="other.io/v1alpha1"), NameHolder.OTHER),
        (owned(), owned(controller=False), NameHolder.OTHER),
        (owned(), owned(name="other", leaving=GONE), NameHolder.OTHER),
        (owned(), NOBODYS, NameHolder.OTHER),
        (NOBODYS, NOBODYS, NameHolder.OWN),
        (NOBODYS, owned(), NameHolder.OTHER),
    ],
)
def test_identity_is_the_uid_of_the_controller(
    wanted: ObjectMeta, existing: ObjectMeta, expected: NameHolder
) -> None:
    assert name_holder(wanted, existing) is expected


def test_a_conflict_says_who_is_in_the_way_and_what_to_do() -> None:
    error = name_conflict_error("create Pod web-1", owned(kind="ReplicaSet", name="shop"))
    assert str(error) == (
        "create Pod web-1: the name is taken by an object of ReplicaSet shop; "
        "delete that object or rename the workload"
    )
    assert "an object without a controller" in str(name_conflict_error("create Pod web-1", NOBODYS))
