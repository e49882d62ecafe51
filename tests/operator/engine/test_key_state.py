"""Records of keys: one for each, dropped with the key, and with a set those of its replicas."""

from __future__ import annotations

from grove.operator.engine.key_state import KeyStates, ReplicaState, SetState
from grove.operator.keys import DomainKey, GraphKey, ReplicaKey, SetKey
from grove.plan.model import ReplicaReport, ReplicaSummary

SET, REPLICA = SetKey("ns", "app"), ReplicaKey("ns", "app", 1)


def test_each_kind_of_key_has_its_record():
    states = KeyStates()
    assert isinstance(states.of(SET), SetState)
    assert isinstance(states.of(REPLICA), ReplicaState)
    assert states.of(DomainKey("nvidia", "ns", "app")) is not states.of(GraphKey("ns", "app"))
    assert states.of(SET) is states.find(SET)
    assert states.of(GraphKey("ns", "app")) is not states.of(SET), "although both have one name"
    assert states.replicas_of(SET) == [REPLICA]


def test_dropped_replica_takes_its_report():
    states = KeyStates()
    states.of(REPLICA)
    states.of(SET).reports[1] = ReplicaReport(1, ReplicaSummary())
    states.of(SET).surplus.add(2)
    states.drop(REPLICA)
    assert states.find(REPLICA) is None
    assert states.of(SET).reports == {}
    assert states.replicas_of(SET) == []


def test_replica_without_set_leaves_no_record():
    """A pod whose set is gone: its replica has a record for one pass."""
    states = KeyStates()
    states.of(REPLICA).deleted_pods = {"p"}
    states.drop(REPLICA)
    assert len(states) == 0
