"""Validation of the bounds of an autoscaler, for cliques and scaling groups: the count is 0 or at least
`minAvailable`, also when the autoscaler sets it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from grove.api.field_errors import FieldError, invalid
from grove.api.types.common import AutoScalingConfig

_METRICS_AT_ZERO = ("Object", "External")
"""The types of metrics that do not come from pods: they have a value while there are none."""


def errors(path: str, config: AutoScalingConfig, fewest: int, least: int | None) -> Iterator[FieldError]:
    """Errors of the bounds. `fewest` is `minReplicas` or its default, `least` is `minAvailable`."""
    most = config.max_replicas
    if fewest < 0 or (fewest and least is not None and fewest < least):
        yield invalid(f"{path}.minReplicas", fewest, "must be 0, or greater than or equal to minAvailable")
    if fewest == 0 and not any(map(_has_value_at_zero, config.metrics)):
        why = "must be greater than 0 without a metric of type Object or External: others need running pods"
        yield invalid(f"{path}.minReplicas", fewest, why)
    if most < fewest:
        yield invalid(f"{path}.maxReplicas", most, "must be greater than or equal to minReplicas")
    elif fewest == 0 and least is not None and most < least:
        yield invalid(f"{path}.maxReplicas", most, "must be greater than or equal to minAvailable")


def warnings(path: str, config: AutoScalingConfig, least: int | None) -> Iterator[str]:
    """A warning about counts that the autoscaler may ask for and does not get."""
    if config.min_replicas == 0 and least is not None and least > 1:
        yield (
            f"{path}.minReplicas is 0 and minAvailable is {least}: a count between them is refused, so while "
            "the metric asks for one, the autoscaler changes nothing and 0 stays 0; use a metric that asks "
            "for 0 or at least minAvailable, or lower minAvailable"
        )


def _has_value_at_zero(metric: msgspec.Raw) -> bool:
    decoded = msgspec.json.decode(metric)
    return isinstance(decoded, dict) and decoded.get("type") in _METRICS_AT_ZERO
