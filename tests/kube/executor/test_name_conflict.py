"""The owner of an existing object with the wanted name, and the error if it is another."""

import pytest

from grove.api.meta import ObjectMeta, OwnerReference
from grove.kube.executor.name_conflict import NameHolder, name_conflict_error, name_holder

DELETED_AT = "2026-01-01T00:00:00Z"


def owned(
    uid: str = "u1",
    name: str = "web",
    kind: str = "PodClique",
    version: str = "grove.io/v1alpha1",
    *,
    controller: bool = True,
    terminating: str | None = None,
) -> ObjectMeta:
    owner = OwnerReference(version, kind, name, uid, controller=controller)
    return ObjectMeta(name="pod", owner_references=(owner,), deletion_timestamp=terminating)


WITHOUT_OWNER = ObjectMeta(name="pod")


@pytest.mark.parametrize(
    ("wanted", "existing", "expected"),
    [
        (owned(), owned(), NameHolder.OWN),
        (owned(), owned(version="grove.io/v1beta1"), NameHolder.OWN),
        (owned(), owned(terminating=DELETED_AT), NameHolder.TERMINATING),
        (owned(), owned(uid="u0"), NameHolder.TERMINATING),
        (owned(), owned(uid="u0", terminating=DELETED_AT), NameHolder.TERMINATING),
        (owned(), owned(name="other"), NameHolder.OTHER),
        (owned(), owned(kind="ReplicaSet"), NameHolder.OTHER),
        (owned(), owned(version="other.io/v1alpha1"), NameHolder.OTHER),
        (owned(), owned(controller=False), NameHolder.OTHER),
        (owned(), owned(name="other", terminating=DELETED_AT), NameHolder.OTHER),
        (owned(), WITHOUT_OWNER, NameHolder.OTHER),
        (WITHOUT_OWNER, WITHOUT_OWNER, NameHolder.OWN),
        (WITHOUT_OWNER, owned(), NameHolder.OTHER),
    ],
)
def test_name_holder_is_decided_by_controller_uid(
    wanted: ObjectMeta, existing: ObjectMeta, expected: NameHolder
) -> None:
    assert name_holder(wanted, existing) is expected


def test_name_conflict_error_names_owner_and_remedy() -> None:
    error = name_conflict_error("create Pod web-1", owned(kind="ReplicaSet", name="shop"))
    assert str(error) == (
        "create Pod web-1: the name is taken by an object of ReplicaSet shop; "
        "delete that object or rename the workload"
    )
    assert "an object without a controller" in str(name_conflict_error("create Pod web-1", WITHOUT_OWNER))
