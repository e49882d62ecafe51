"""What a person writes in a YAML file, and what we take it for."""

from __future__ import annotations

import pytest

from grove.kube.yaml_parser import YamlError, parse


@pytest.mark.parametrize(
    "word",
    [
        "no",
        "yes",
        "on",
        "off",
        "y",
        "True",
        "1:30",
        "2026-01-01",
        "2026-01-01T00:00:00Z",
        "010",
        "0x10",
        "1_000",
        "+1",
        ".5",
        "1.",
        ".inf",
        "=",
        "15s",
        "v1",
    ],
)
def test_words_stay_words(word):
    assert parse(f"key: {word}") == {"key": word}


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("0", 0),
        ("-12", -12),
        ("2751", 2751),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("-2.5E-1", -0.25),
        ('"1"', "1"),
        ("'true'", "true"),
    ],
)
def test_what_is_not_text(text, meaning):
    assert parse(f"key: {text}") == {"key": meaning}
    assert type(parse(f"key: {text}")["key"]) is type(meaning)


def test_without_numbers_a_token_of_digits_stays_a_token():
    assert parse("token: 12345\nport: 1.5", numbers=False) == {"token": "12345", "port": "1.5"}


def test_json_is_read_too():
    assert parse('{"a": [1, 2.5, "no", null, true]}') == {"a": [1, 2.5, "no", None, True]}


def test_parts_can_be_shared():
    assert parse("a: &a {x: 1}\nb:\n  <<: *a\n  y: 2") == {"a": {"x": 1}, "b": {"x": 1, "y": 2}}


def test_an_empty_text_is_nothing():
    assert parse("# only a comment\n") is None


@pytest.mark.parametrize(
    "text", ["a: [1", "a: b: c", "\tx: 1", "!!python/object:os.system {}", "a: 1\n--- \nb: 2"]
)
def test_what_cannot_be_read_is_said_in_one_line_with_its_place(text):
    with pytest.raises(YamlError, match=r"^not YAML at line \d \(.+\)$"):
        parse(text)
