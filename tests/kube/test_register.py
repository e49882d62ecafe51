"""A register against the plain thing that it stands for: a set of keys for each value."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grove.kube.register import Register

values = st.sampled_from(["red", "blue"])
keys = st.sampled_from([("ns", "a"), ("ns", "b"), ("ns", "c")])


@given(st.lists(st.tuples(values, keys)))
def test_it_knows_who_has_which_value(turns: list[tuple[str, tuple[str, str]]]) -> None:
    register = Register()
    plain: dict[str, list[tuple[str, str]]] = {"red": [], "blue": []}
    for value, key in turns:
        if key in plain[value]:
            register.remove(value, key)
            plain[value].remove(key)
        else:
            register.add(value, key)
            plain[value].append(key)
        assert {each: list(register.get(each)) for each in plain} == plain


def test_adding_twice_is_adding_once() -> None:
    register = Register()
    for _ in range(2):
        register.add("red", ("ns", "a"))
    register.remove("red", ("ns", "a"))
    assert list(register.get("red")) == []
