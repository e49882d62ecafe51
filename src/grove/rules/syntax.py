"""The syntax of names, labels, annotations and environment variables in Kubernetes.

Each function yields the errors of its argument, worded as Kubernetes words them where it has such a rule.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from grove.api.field_errors import ErrorType, FieldError, invalid

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_WORD = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_IS_LABEL = re.compile(_LABEL).fullmatch
_IS_SUBDOMAIN = re.compile(_SUBDOMAIN).fullmatch
_IS_WORD = re.compile(_WORD).fullmatch
_IS_VARIABLE = re.compile(r"[ -<>-~]+").fullmatch

MAX_LABEL = 63
_MAX_SUBDOMAIN = 253
_MAX_ANNOTATIONS = 256 * 1024

_LABEL_FORM = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
    f"and end with an alphanumeric character (e.g. 'my-name', regex used for validation is '{_LABEL}')"
)
_SUBDOMAIN_FORM = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    f"'{_SUBDOMAIN}')"
)
_WORD_FORM = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    f"character (e.g. 'my.name', regex used for validation is '{_WORD}')"
)
_NO_PREFIX = "prefix part must be non-empty"
_NO_DOTS = "must not contain dots: it becomes part of the host names of pods"
_VARIABLE_FORM = (
    "a valid environment variable name must consist only of printable ASCII characters other than '='"
)


def label(value: str) -> Iterator[str]:
    """Errors of a DNS label: one part of a host name."""
    if len(value) > MAX_LABEL:
        yield f"must be no more than {MAX_LABEL} characters"
    if not _IS_LABEL(value):
        yield _LABEL_FORM


def subdomain(value: str) -> Iterator[str]:
    """Errors of a DNS subdomain, which the names of most objects must be."""
    if len(value) > _MAX_SUBDOMAIN:
        yield f"must be no more than {_MAX_SUBDOMAIN} characters"
    if not _IS_SUBDOMAIN(value):
        yield _SUBDOMAIN_FORM


def host_name_part(value: str) -> Iterator[str]:
    """Errors of a name that becomes part of Service names and of pods' host names, which have no dots."""
    yield from subdomain(value)
    if "." in value:
        yield _NO_DOTS


def variable(value: str) -> Iterator[str]:
    """Errors of the name of an environment variable, by the rules of Kubernetes 1.34 and later."""
    if not _IS_VARIABLE(value):
        yield _VARIABLE_FORM


def label_errors(path: str, labels: Mapping[str, str]) -> Iterator[FieldError]:
    """Errors of the labels of an object."""
    for key, value in labels.items():
        yield from (invalid(path, key, wrong) for wrong in label_key(key))
        if not value:
            continue
        if len(value) > MAX_LABEL:
            yield invalid(path, value, f"must be no more than {MAX_LABEL} characters")
        elif not _IS_WORD(value):
            yield invalid(path, value, f"a valid label {_WORD_FORM}")


def annotation_errors(path: str, annotations: Mapping[str, str]) -> Iterator[FieldError]:
    """Errors of the annotations of an object."""
    size = 0
    for key, value in annotations.items():
        size += len(key.encode()) + len(value.encode())
        yield from (invalid(path, key, wrong) for wrong in label_key(key.lower()))
    if size > _MAX_ANNOTATIONS:
        yield FieldError(path, ErrorType.TOO_LONG, detail=f"may not be more than {_MAX_ANNOTATIONS} bytes")


def label_key(key: str) -> tuple[str, ...]:
    """Errors of the key of a label."""
    if len(key) > _MAX_SUBDOMAIN + 1 + MAX_LABEL:
        return (f"must be no more than {_MAX_SUBDOMAIN + 1 + MAX_LABEL} characters",)
    return _qualified_name_errors(key)


@lru_cache(maxsize=1024)
def _qualified_name_errors(key: str) -> tuple[str, ...]:
    """Errors of a key, with or without a prefix. Cached: few different keys are used again and again."""
    prefix, slash, name = key.rpartition("/")
    wrong = []
    if slash:
        wrong += [f"prefix part {each}" for each in subdomain(prefix)] if prefix else [_NO_PREFIX]
    if not name:
        wrong.append("name part must be non-empty")
    elif len(name) > MAX_LABEL:
        wrong.append(f"name part must be no more than {MAX_LABEL} characters")
    elif not _IS_WORD(name):
        wrong.append(f"name part {_WORD_FORM}")
    return tuple(wrong)


def duplicates(found: Iterable[str]) -> list[str]:
    """The values that occur more than once."""
    listed = list(found)
    if len(set(listed)) == len(listed):
        return []
    return [each for each, count in Counter(listed).items() if count > 1]
