"""Objects in terminating namespaces, where nothing can be created any more: creates are tried once, and the
errors of that attempt are reported until the object is gone.

It is known from the reply to a create. The record of the set, deployment or domain has its UID: a new object
of the same name is in a new namespace.
"""

from __future__ import annotations

from grove.operator.engine.key_state import KeyStates
from grove.operator.keys import Key, ReplicaKey, parent_of


def is_in_terminating_namespace(states: KeyStates, key: Key, uid: str) -> bool:
    """Whether the object of a key, or the set of a replica, is in a terminating namespace."""
    state = states.find(_owner(key))
    return state is not None and bool(uid) and state.terminating_uid == uid


def record_terminating_namespace(states: KeyStates, key: Key, uid: str) -> None:
    """Store that the namespace of a key is terminating; `uid` is that of its object, or of its set."""
    states.of(_owner(key)).terminating_uid = uid


def _owner(key: Key) -> Key:
    return parent_of(key) if isinstance(key, ReplicaKey) else key
