"""How conditions are built."""

from __future__ import annotations

from grove.plan.conditions import new_condition


def test_long_message_of_a_condition_is_cut():
    message = new_condition("Waiting", True, "NodeTaint", "é" * 40_000).message
    assert (len(message), message[-2:]) == (4096, "é…")


def test_message_of_the_greatest_length_is_not_cut():
    message = "x" * 4096
    assert new_condition("Waiting", True, "NodeTaint", message).message == message
