"""The archive of `grove diagnostics`."""

from __future__ import annotations

import io
import json
import tarfile

from grove.cli.commands.installation.bundle import Missing, archive, chosen, contents


def test_files_above_the_limit_are_left_out_and_named():
    kept, left_out = chosen({"a": b"12345", "b": b"123456", "c": b"12345"}, limit=10)
    assert list(kept) == ["a", "c"]
    assert left_out == [Missing("b", "6 bytes: together more than 10: use --namespace")]


def test_text_that_is_no_utf8_and_tokens_are_replaced():
    kept, _ = chosen({"log": b"\xff Bearer abcdefgh12345"})
    assert kept["log"].decode() == "\N{REPLACEMENT CHARACTER} Bearer (removed)"


def test_archive_lists_its_files_and_what_is_missing():
    listed = contents(
        {"doctor.txt": b"ok\n"},
        [Missing("logs", "none")],
        created="now",
        version="1",
        server_version="v1.37.1",
    )
    packed = archive("folder", {"doctor.txt": b"ok\n"}, listed, 1_800_000_000.0)
    assert packed == archive("folder", {"doctor.txt": b"ok\n"}, listed, 1_800_000_000.0)
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        assert {each.name: each.mode for each in tar} == {
            "folder/contents.json": 0o600,
            "folder/doctor.txt": 0o600,
        }
        file = tar.extractfile("folder/contents.json")
        assert file is not None
        described = json.loads(file.read())
    assert described["files"] == [{"name": "doctor.txt", "bytes": 3}]
    assert described["missing"] == [{"what": "logs", "reason": "none"}]
