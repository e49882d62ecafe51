"""Decoding of pods accepts what the API server sends."""

from __future__ import annotations

import msgspec

from grove.api.types.pod import Pod


def test_pod_with_null_transition_time_decodes() -> None:
    pod = msgspec.json.decode(
        b'{"metadata": {"name": "a"}, "status": {"conditions": ['
        b'{"type": "Ready", "status": "True", "lastProbeTime": null, "lastTransitionTime": null}]}}',
        type=Pod,
    )
    assert pod.status.conditions[0].last_transition_time is None
