"""Messages of Kubernetes' scheduler, as it writes them into the condition PodScheduled."""

from __future__ import annotations

import pytest

from grove.reasons.codes import ReasonCode as Code
from grove.reasons.scheduler import _code_and_line, scheduler_reason

PREEMPTION = "preemption: 0/4 nodes are available: 4 Insufficient cpu."
MESSAGES = [
    ("0/4 nodes are available: 4 Insufficient nvidia.com/gpu.", Code.INSUFFICIENT_RESOURCES),
    ("0/4 nodes are available: 4 Too many pods.", Code.INSUFFICIENT_RESOURCES),
    ("0/4 nodes are available: 4 node(s) had untolerated taint(s).", Code.NODE_TAINT),
    ("0/4 nodes are available: 4 node(s) had untolerated taint {maintenance: }.", Code.NODE_TAINT),
    (
        "0/4 nodes are available: 3 node(s) had untolerated taint {gpu: }, 1 Insufficient cpu.",
        Code.INSUFFICIENT_RESOURCES,
    ),
    ("0/4 nodes are available: 4 node(s) were unschedulable.", Code.NODE_CORDONED),
    (
        "0/4 nodes are available: 4 node(s) had untolerated taint {node.kubernetes.io/not-ready: }.",
        Code.NODE_NOT_READY,
    ),
    (
        "0/4 nodes are available: 4 node(s) didn't match Pod's node affinity/selector.",
        Code.NODE_SELECTOR_MISMATCH,
    ),
    (
        "0/4 nodes are available: 1 node(s) were unschedulable, "
        "3 node(s) didn't match Pod's node affinity/selector.",
        Code.NODE_SELECTOR_MISMATCH,
    ),
    (
        "0/4 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",
        Code.VOLUME_NOT_BOUND,
    ),
    ('0/4 nodes are available: persistentvolumeclaim "models" not found.', Code.VOLUME_NOT_BOUND),
    (
        "0/4 nodes are available: 4 node(s) didn't find available persistent volumes to bind.",
        Code.VOLUME_NOT_BOUND,
    ),
    (
        "0/4 nodes are available: 4 node(s) didn't match PersistentVolume's node affinity.",
        Code.VOLUME_NOT_BOUND,
    ),
    ("0/4 nodes are available: 4 cannot allocate all claims.", Code.CLAIM_NOT_ALLOCATED),
    ("0/4 nodes are available: request gpu: device class gpu.x does not exist.", Code.CLAIM_NOT_ALLOCATED),
    (
        "0/4 nodes are available: 3 node(s) didn't match Pod's node affinity/selector, "
        "1 node(s) didn't match pod affinity rules.",
        Code.SCHEDULER_MESSAGE,
    ),
    (
        '0/4 nodes are available: waiting for dynamic resource controller to create the resourceclaim "a".',
        Code.CLAIM_NOT_ALLOCATED,
    ),
    ("0/4 nodes are available: 4 node(s) didn't match pod anti-affinity rules.", Code.SCHEDULER_MESSAGE),
    ("minCount (2) cannot be satisfied: 0 scheduled, 1 remaining", Code.SCHEDULER_MESSAGE),
    ("no nodes available to schedule pods", Code.SCHEDULER_MESSAGE),
    ("", Code.SCHEDULER_MESSAGE),
]


@pytest.mark.parametrize(("text", "code"), MESSAGES)
def test_message_of_the_scheduler_has_a_code(text, code):
    assert scheduler_reason(text).code is code


@pytest.mark.parametrize(("text", "code"), MESSAGES)
def test_text_about_preemption_does_not_change_the_code(text, code):
    assert scheduler_reason(f"{text} {PREEMPTION}").code is code


def test_scheduler_is_named_and_its_message_is_one_line():
    found = scheduler_reason("no\n  room", "kai-scheduler")
    assert found.message == "kai-scheduler says: no room"


def test_long_message_of_a_scheduler_is_cut():
    assert len(scheduler_reason("node " * 1000).message) <= 500


def test_end_of_a_very_long_message_is_not_read():
    assert scheduler_reason("x" * 2000 + " 4 Insufficient cpu.").code is Code.SCHEDULER_MESSAGE


def test_number_too_long_for_nodes_is_not_counted():
    text = "12345678901 node(s) didn't find available persistent volumes, 2 node(s) didn't match pod affinity"
    assert scheduler_reason(text).code is Code.SCHEDULER_MESSAGE


def test_message_of_digits_only_has_a_code():
    assert scheduler_reason("9" * 5000 + " node(s) had a taint").code is Code.SCHEDULER_MESSAGE


def test_equal_messages_are_read_once():
    _code_and_line.cache_clear()
    found = [scheduler_reason(MESSAGES[0][0], name) for name in ("kai-scheduler", "volcano", "volcano")]
    assert _code_and_line.cache_info().misses == 1
    assert {each.message.partition(" says: ")[0] for each in found} == {"kai-scheduler", "volcano"}


def test_kept_messages_are_cut_and_their_number_is_limited():
    _code_and_line.cache_clear()
    for number in range(300):
        scheduler_reason(f"{number} " + "x" * 5000)
        scheduler_reason(f"{number} " + "x" * 6000)
    known = _code_and_line.cache_info()
    assert (known.misses, known.currsize) == (300, 256)
