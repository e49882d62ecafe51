"""The YAML parser for files of users: what is text, what is not, and the errors."""

from __future__ import annotations

import pytest

from grove.kube.yaml_parser import YamlError, parse, parse_all


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
def test_yaml_1_1_special_words_stay_text(word):
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
def test_yaml_literals_and_numbers_are_typed(text, meaning):
    assert parse(f"key: {text}") == {"key": meaning}
    assert type(parse(f"key: {text}")["key"]) is type(meaning)


def test_digits_stay_text_without_numbers():
    assert parse("token: 12345\nport: 1.5", numbers=False) == {"token": "12345", "port": "1.5"}


def test_json_is_parsed_as_yaml():
    assert parse('{"a": [1, 2.5, "no", null, true]}') == {"a": [1, 2.5, "no", None, True]}


def test_yaml_anchors_and_merge_keys_work():
    assert parse("a: &a {x: 1}\nb:\n  <<: *a\n  y: 2") == {"a": {"x": 1}, "b": {"x": 1, "y": 2}}


def test_empty_yaml_is_none():
    assert parse("# only a comment\n") is None


@pytest.mark.parametrize(
    "text", ["a: [1", "a: b: c", "\tx: 1", "!!python/object:os.system {}", "a: 1\n--- \nb: 2"]
)
def test_yaml_error_is_one_line_with_line_number(text):
    with pytest.raises(YamlError, match=r"^not YAML at line \d \(.+\)$"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[" * 100_000, "it nests deeper than 200 levels"),
        ("- " * 300 + "x", "it nests deeper than 200 levels"),
        ("a: &a " + "[" * 150 + "]" * 150 + "\nb: " + "[" * 100 + "*a" + "]" * 100, "it nests deeper"),
        ("a: &a [*a]", "alias a is inside of its own value"),
        ("a: &a\n  b: *a", "alias a is inside of its own value"),
        (
            "a: &a [" + "x, " * 1000 + "]\nb: &b [" + "*a, " * 1000 + "]",
            "with its aliases it has more than 1000000 values",
        ),
        ("a: " + "9" * 5000, f"'{'9' * 40}' is not of type int"),
        ("a: !!int x", "'x' is not of type int"),
        ("a: !!int ''", "'' is not of type int"),
        ("a: !!float x", "'x' is not of type float"),
        ("a: !!bool x", "'x' is not of type bool"),
        ("a: !!timestamp x", "could not determine a constructor"),
        ("a: !!timestamp 2026-01-01", "could not determine a constructor"),
        ("a: !!set {b}", "could not determine a constructor"),
    ],
)
@pytest.mark.parametrize("function", [parse, parse_all])
def test_hostile_yaml_is_refused_in_one_line(function, text, problem):
    with pytest.raises(YamlError) as refused:
        function(text)
    assert problem in str(refused.value)
    assert str(refused.value).startswith("not YAML at line ")
    assert "\n" not in str(refused.value)


def test_alias_after_its_value_is_read():
    assert parse("a: &a [1]\nb: [*a, *a]") == {"a": [1], "b": [[1], [1]]}
