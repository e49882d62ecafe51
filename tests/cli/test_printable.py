"""Text of others does not control the terminal."""

from __future__ import annotations

import json
import unicodedata

import pytest

from grove.cli.main import main
from grove.cli.printable import printable
from grove.cli.views.line_width import one_line
from grove.cli.views.text_layout import Row, lines
from grove.cluster_state.snapshot_file import encode
from tests.cluster_state.states import shaped

HOSTILE = "\x1b[2J\x1b]0;owned\x07\x9b31m\x7f\u202e\u2028x"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é ✓", "plain é ✓"),
        ("a\tb\r\nc\u00a0d", "a b  c d"),
        ("\x1b[2J\x07", "�[2J�"),
        ("\x9b31m\x7f\x00\x85", "�31m���"),
        ("\u202e\u2028\ud800", "���"),
    ],
)
def test_control_characters_are_replaced(text, shown):
    assert printable(text) == shown


def test_lines_of_trees_and_tables_are_printable():
    (line,) = lines(Row(f"a{HOSTILE}", (f"b{HOSTILE}",)))
    assert line.text.isprintable()
    assert one_line(f"a\n{HOSTILE}").isprintable()


def hostile_snapshot() -> bytes:
    """A cluster whose server, nodes and objects have names with escape sequences."""
    document = json.loads(encode(shaped("1x2", 8, "t")))
    for kind in document["kinds"]:
        if kind["plural"] == "nodes":
            for node in kind["items"]:
                node["metadata"]["name"] += HOSTILE
                node["metadata"]["labels"] = {
                    key: value + HOSTILE for key, value in node["metadata"]["labels"].items()
                }
        elif kind["plural"] == "podcliquesets":
            kind["items"] = [{"metadata": {"name": f"bad{HOSTILE}", "labels": 5}}]
            kind["problem"] = ""
        elif kind["plural"] == "pods":
            kind["namespace"] = HOSTILE
    return json.dumps(document).encode()


@pytest.mark.parametrize("output", ["table", "wide", "json", "yaml", "name"])
@pytest.mark.parametrize(
    "arguments", [["topology", "--nodes"], ["explain", "-A"], ["explain", f"x{HOSTILE}"]], ids=str
)
def test_escape_sequences_are_not_printed(capsys, tmp_path, arguments, output):
    file = tmp_path / "cluster.json"
    file.write_bytes(hostile_snapshot())
    with pytest.raises(SystemExit):
        main([*arguments, "--snapshot", str(file), "-o", output])
    out, err = capsys.readouterr()
    assert "owned" in out + err
    controls = {each for each in out + err if unicodedata.category(each) == "Cc"}
    assert controls <= {"\n"}
