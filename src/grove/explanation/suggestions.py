"""What a user may have meant by a name that does not exist. Pure."""

from __future__ import annotations

from collections.abc import Iterable


def unknown_name(kind: str, name: str, namespace: str, known: Iterable[tuple[str, str]]) -> str:
    """The line on an object that does not exist. `known`: namespaces and names of those that do."""
    problem = f"no {kind} {name} in namespace {namespace}"
    there = list(known)
    if elsewhere := sorted(place for place, each in there if each == name):
        return f"{problem}: there is one in namespace {elsewhere[0]}: add -n {elsewhere[0]}"
    if close := closest(name, (each for place, each in there if place == namespace)):
        return f"{problem}: did you mean {close}?"
    return f"{problem}: grove get -A lists all sets"


def closest(wanted: str, known: Iterable[str]) -> str:
    """The known word that is most like this one; empty if none is."""
    import difflib  # only a wrong name needs it, and imports take much of the time of a command

    return next(iter(difflib.get_close_matches(wanted, list(known), n=1)), "")
