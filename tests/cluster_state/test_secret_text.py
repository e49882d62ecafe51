"""Secrets in arguments and in text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grove.cluster_state.secret_text import REMOVED, without_secret_arguments, without_tokens

S = "s3cr3t-value"
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJtZSJ9.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--api-key", S],
        [f"--api-key={S}"],
        [f"--hf_token={S}"],
        ["-password", S],
        ["--auth.secret", S, "--port", "80"],
        ["sh", "-c", f"export HF_TOKEN={S}; exec serve"],
        ["sh", "-c", f"export HF_TOKEN='{S} {S}' && exec serve"],
        ["sh", "-c", f'serve --api-key "{S}" --port 80'],
        ["sh", "-c", f"curl -H 'Authorization: Bearer {S}' http://x"],
        [f"https://user:{S}@example.com/path"],
        [f"--dsn=postgres://user:{S}@db/x"],
        [f"PASSWORD = {S}"],
        [f"--token={S}\n{S}"],
    ],
    ids=str,
)
def test_secret_of_arguments_is_removed(arguments):
    cleaned = without_secret_arguments(arguments)
    assert S not in str(cleaned)
    assert REMOVED in str(cleaned)
    assert len(cleaned) == len(arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--max-num-batched-tokens", "8192", "--tokenizer", "/models/x"],
        ["--max-tokens=12", "--skip-tokenizer-init"],
        ["python3", "-m", "vllm", "--port", "80"],
        ["--api-key", "--port", "80"],
        ["sh", "-c", "count the token of each line"],
        ["--model", "https://example.com/a:b"],
        [1, None, {"a": 2}],
        [],
    ],
    ids=str,
)
def test_other_arguments_stay(arguments):
    assert without_secret_arguments(arguments) == arguments


@pytest.mark.parametrize(
    "token",
    [JWT, "hf_" + "a" * 34, "nvapi-" + "b" * 40, "ghp_" + "c" * 36, "AKIAABCDEFGHIJKLMNOP", "sk-" + "d" * 40],
)
def test_known_token_is_removed_from_any_text(token):
    text = f'{{"message": "pull failed with {token}: denied"}}'
    assert without_tokens(text) == f'{{"message": "pull failed with {REMOVED}: denied"}}'


@pytest.mark.parametrize("word", ["eyJ-", "hf_-", "a.", "token ", "token=", "--token ", "://a:", "Bearer "])
def test_time_grows_with_the_length_of_the_text_only(word):
    """Half a megabyte of any beginning; quadratic time would be minutes."""
    without_secret_arguments([word * 100_000])


@given(st.lists(st.text(max_size=30)))
def test_any_arguments_keep_their_number(arguments):
    once = without_secret_arguments(arguments)
    assert len(once) == len(arguments)
    assert without_secret_arguments(once) == once
