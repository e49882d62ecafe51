"""Indexes compared with a plain model: a list of keys for each value."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from grove.kube.cache.index import Indexes, KeyIndex

values = st.sampled_from(["red", "blue"])
keys = st.sampled_from([("ns", "a"), ("ns", "b"), ("ns", "c")])


@given(st.lists(st.tuples(values, keys)))
def test_key_index_equals_lists_of_keys_by_value(changes: list[tuple[str, tuple[str, str]]]) -> None:
    key_index = KeyIndex()
    plain: dict[str, list[tuple[str, str]]] = {"red": [], "blue": []}
    for value, key in changes:
        if key in plain[value]:
            key_index.remove(value, key)
            plain[value].remove(key)
        else:
            key_index.add(value, key)
            plain[value].append(key)
        assert {each: list(key_index.get(each)) for each in plain} == plain


def test_key_index_add_is_idempotent() -> None:
    key_index = KeyIndex()
    for _ in range(2):
        key_index.add("red", ("ns", "a"))
    key_index.remove("red", ("ns", "a"))
    assert list(key_index.get("red")) == []


def test_failing_index_function_affects_its_object_only() -> None:
    def fails_on_bad(found: str) -> tuple[str, ...]:
        if found == "bad":
            raise RecursionError
        return (found,)

    indexes = Indexes({"value": fails_on_bad}, "things")
    with capture_logs() as logs:
        for number, found in enumerate(("good", "bad", "good")):
            indexes.update(("n", str(number)), None, found)
        indexes.update(("n", "1"), "bad", "good")
        indexes.update(("n", "0"), "good", "bad")
        indexes.update(("n", "0"), "bad", None)
    assert list(indexes.get("value", "good")) == [("n", "2"), ("n", "1")]
    assert {(line["event"], line["key"]) for line in logs} == {
        ("index function failed", "n/0"),
        ("index function failed", "n/1"),
    }
