"""Building blocks of the wire types: base class, defaults, and schema keywords beyond Python's types.

The structs are the single definition of the API. What a CRD needs and a Python type cannot express is
attached with `Annotated`: msgspec ignores it, so decoding objects stays cheap and lenient (the API server has
already validated them), and `grove.api.crds.structural_schema` reads it when it generates the CRDs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar, cast

import msgspec
from msgspec import Struct

T = TypeVar("T")


class Wire(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """Base of all wire types. Subclasses repeat `frozen=True`: without it mypy allows assignments."""


class EncodedDefault:
    """A default that is encoded like any other value, as a Go field without `omitempty` is."""

    def __init__(self, value: object, by_server: bool) -> None:
        self.value = value
        self.by_server = by_server

    def __call__(self) -> object:
        return self.value


def always(value: T) -> T:
    """A required field with a default in Python: the value is always encoded, even if it is the default.

    A merge patch that omits a count of 0 would leave the old count unchanged, hence not `= 0`.
    """
    return cast(T, msgspec.field(default_factory=EncodedDefault(value, by_server=False)))


def defaulted(value: T, name: str | None = None) -> T:
    """A field that the API server sets to the default if the user omits it; the operator always encodes it.

    `name` is for names that the conversion to camel case gets wrong, such as `autoMNNVLEnabled`.
    """
    return cast(T, msgspec.field(default_factory=EncodedDefault(value, by_server=True), name=name))


@dataclass(frozen=True)
class Rule:
    """A CEL rule: validated by the API server itself, whether or not the operator runs, on `/scale` too."""

    rule: str
    message: str
    reason: str = ""
    field_path: str = ""

    def entry(self) -> dict[str, str]:
        """The rule as an entry of `x-kubernetes-validations`."""
        entry = {"rule": self.rule, "message": self.message}
        if self.reason:
            entry["reason"] = self.reason
        if self.field_path:
            entry["fieldPath"] = self.field_path
        return entry


@dataclass(frozen=True, eq=False)
class Facet:
    """Schema keywords, CEL rules and a readable type name for the type that it annotates."""

    keywords: dict[str, Any] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    display_name: str = ""


@dataclass(frozen=True)
class KubernetesSchema:
    """Marks raw JSON whose schema is a definition of the API server's own OpenAPI document."""

    definition: str


def _camel(word: str) -> str:
    head, *tail = word.split("_")
    return head + "".join(part.capitalize() for part in tail)


def facet(display_name: str = "", **keywords: Any) -> Facet:
    """Schema keywords in Python spelling: `facet(min_length=1)` is `minLength: 1`."""
    return Facet({_camel(word): value for word, value in keywords.items()}, display_name=display_name)


def text(pattern: str = "", shortest: int = 0, longest: int = 0) -> Facet:
    """Limits of a string: pattern and length."""
    limits = {"pattern": pattern, "minLength": shortest, "maxLength": longest}
    return Facet({word: value for word, value in limits.items() if value})


def checked(*rules: Rule) -> Facet:
    """CEL rules for one use of a type."""
    return Facet(rules=rules)


def keyed(*keys: str) -> Facet:
    """A list that server-side apply merges by these keys, which must be unique in it."""
    return Facet({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)})


ATOMIC = Facet({"x-kubernetes-list-type": "atomic"})

Int32 = Annotated[int, facet(format="int32")]
Int64 = Annotated[int, facet(format="int64")]
LARGEST_INT32 = 2**31 - 1
MOST = 100_000
"""The maximum of every count that users write. The API server checks it, on `/scale` too, so that no count is
so large that counting up to it keeps the operator from reconciling other sets. Real workloads have fewer
pods; the configurable limit on the pods of a set (`limits.podsPerSet`) is lower."""
Count = Annotated[int, facet(format="int32", maximum=MOST)]
Time = Annotated[str, facet(format="date-time", display_name="time")]
Duration = Annotated[str, Facet(display_name="duration")]
"""A Go duration such as `4h0m0s`; parsed by `grove.api.formats.durations`."""
