"""What the header says about the picture: how old it is, and what is away."""

from __future__ import annotations

from typing import Any

import pytest

NOW = 1_767_225_600_000  # 2026-01-01T00:00:00Z
STATE = """async (header, [status, problem, picture, silent, now]) => {
  const { fullPicture } = await import("/static/js/wire.js");
  const store = { picture: picture && fullPicture(picture), status, problem, heardAt: now - silent };
  return header.pictureState(store, now, now);
}"""
ALIVE = {"alive": True, "lease": "grove-system/grove", "renewed": "2025-12-31T23:59:58Z"}


def picture(**parts: Any) -> dict[str, Any]:
    source = {"name": "https://127.0.0.1:6443"}
    return {"version": "1", "now": "2026-01-01T00:00:00Z", "source": source, "operator": ALIVE, **parts}


SNAPSHOT = {"name": "cluster.json", "live": False, "takenAt": "2025-12-29T00:00:00Z"}
AWAY = {"connected": False, "problem": "cannot be reached", "since": "2025-12-31T23:58:00Z"}
GONE = {"alive": False, "lease": "grove-system/grove", "renewed": "2025-12-31T23:55:00Z"}


@pytest.mark.parametrize(
    ("status", "problem", "found", "silent", "kind", "words"),
    [
        ("loading", "", None, 0, "loading", "loading"),
        ("loading", "refused", None, 0, "error", "not connected"),
        ("signed-out", "", None, 0, "loading", "signed out"),
        ("live", "", picture(), 0, "live", "live"),
        ("live", "", picture(operator=None), 0, "live", "live"),
        ("stale", "gone", picture(), 300_000, "error", "picture 5 min old"),
        ("stale", "gone", picture(source=SNAPSHOT), 90_000, "error", "reconnecting to the dashboard"),
        ("snapshot", "", picture(source=SNAPSHOT), 0, "snapshot", "snapshot, 3 d old"),
        ("live", "", picture(connection=AWAY), 0, "error", "picture 2 min old: API server away"),
        ("live", "", picture(operator=GONE), 0, "warning", "operator away since 5 min"),
        ("live", "", picture(operator={"alive": False}), 0, "warning", "operator away"),
        ("live", "", picture(operator=GONE, connection=AWAY), 0, "error", "API server away"),
    ],
)
async def test_state_of_picture_is_honest(call, status, problem, found, silent, kind, words):
    state = await call("header.js", STATE, [status, problem, found, silent, NOW])
    assert state["kind"] == kind
    assert words in state["text"]


@pytest.mark.parametrize(
    ("status", "problem", "found", "lines"),
    [
        ("loading", "refused", None, [["not connected", "refused"]]),
        ("loading", "", None, []),
        ("signed-out", "gone", None, []),
        ("live", "", picture(), []),
        ("live", "", picture(operator=None), []),
        ("snapshot", "", picture(source=SNAPSHOT, operator=GONE), []),
        ("stale", "gone", picture(operator=GONE), [["server of the dashboard is away", "5 min old", "gone"]]),
        ("live", "", picture(connection=AWAY), [["API server is away", "2 min old", "cannot be reached"]]),
        ("live", "", picture(operator=GONE), [["operator is away", "grove-system/grove", "5 min"]]),
        ("live", "", picture(operator={"alive": False}), [["operator is away", "no Lease"]]),
        (
            "live",
            "",
            picture(operator=GONE, connection=AWAY),
            [["API server is away", "cannot be reached"], ["operator was last seen 5 min ago"]],
        ),
    ],
)
async def test_everything_that_is_away_is_said(call, status, problem, found, lines):
    problems = STATE.replace("pictureState", "pictureProblems")
    said = await call("header.js", problems, [status, problem, found, 300_000, NOW])
    assert len(said) == len(lines), said
    for text, words in zip(said, lines, strict=True):
        assert all(word in text for word in words), text


async def test_attempts_to_reconnect_become_rarer(call):
    delays = """(connection) => [0, 1, 2, 3, 10, 1000].map((attempt) =>
      [connection.delayBefore(attempt, 0), connection.delayBefore(attempt, 1)])"""
    found = await call("connection.js", delays)
    assert all(0 < least <= most <= 15_000 for least, most in found)
    assert [most for _, most in found] == sorted(most for _, most in found)


async def test_ages_have_two_units_at_most(call):
    ages = {0: "0 s", 59: "59 s", 300: "5 min", 3_600: "1 h", 7_500: "2 h 5 min", 86_400 * 4: "4 d"}
    found = await call("time.js", "(time, all) => all.map((each) => time.ageText(each))", list(ages))
    assert found == list(ages.values())


async def test_time_ahead_of_the_clock_has_no_negative_age(call):
    assert await call("time.js", '(time, now) => time.age("2026-01-01T00:00:05Z", now)', NOW) == "0 s"
