"""Records which marked tests passed on a version of Kubernetes: `make versions KUBERNETES=1.36`.

A test that shows what Grove enforces has a mark, `@pytest.mark.proves("gang", scheduler="kai-scheduler")`;
the page of Kubernetes versions is generated from the records. The plugin checks the marks of every run, and
with `--record-versions` it writes the outcomes to `tests/versions`.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tools.versions.features import mark_problem
from tools.versions.marks import all_marks
from tools.versions.records import OUTCOMES, Mark, Record

from grove.local.build.binaries import version_of
from grove.local.build.versions import default_minor
from grove.local.build.versions import programs as versions
from tests.clusters import programs
from tools.versions import records

_PROPERTY = "proves"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option that `make versions` sets."""
    parser.addoption(
        "--record-versions",
        action="store_true",
        help="record the outcomes of tests with the mark `proves` in tests/versions",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Record in the main process; the processes of pytest-xdist send their reports to it."""
    if config.getoption("--record-versions") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(config.rootpath))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Check the marks, and attach them to the reports, before tests are deselected."""
    marks = {item: _marks(item) for item in items}
    cases = Counter(mark for found in marks.values() for mark in found)
    for item, found in marks.items():
        if found:
            item.user_properties.append((_PROPERTY, [[*mark, cases[mark]] for mark in found]))


def _marks(item: pytest.Item) -> list[Mark]:
    found = []
    for marker in item.iter_markers(_PROPERTY):
        feature, scheduler = (*marker.args, None)[0], marker.kwargs.get("scheduler")
        if problem := mark_problem(feature, scheduler):
            raise pytest.UsageError(f"{item.nodeid}: mark proves: {problem}")
        found.append(Mark(item.nodeid.partition("[")[0], str(feature), str(scheduler)))
    return found


class Recorder:
    """Collects the outcomes of a run and records them in its end."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._outcomes: dict[Mark, dict[str, str]] = {}
        self._expected: dict[Mark, int] = {}
        self._finished: set[str] = set()
        self._summary: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Set-up, test and clean-up of a case each have a report; the worst is the outcome."""
        for *mark, cases in dict(report.user_properties).get(_PROPERTY, ()):
            outcomes = self._outcomes.setdefault(Mark(*mark), {})
            before = outcomes.get(report.nodeid, OUTCOMES[0])
            outcomes[report.nodeid] = max(before, report.outcome, key=OUTCOMES.index)
            self._expected[Mark(*mark)] = cases
        if report.when == "teardown":
            self._finished.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Record the tests of which all cases ran; one that was interrupted keeps its earlier record."""
        complete = {mark: found for mark, found in self._outcomes.items() if self._is_complete(mark)}
        for mark in sorted(self._outcomes.keys() - complete.keys()):
            self._summary.append(f"not recorded, not all cases ran: {mark.test}")
        if not complete:
            self._summary.append("nothing to record: no test with the mark `proves` ran completely")
            return
        minor, release, today = default_minor(), _release(), datetime.now(UTC).date().isoformat()
        now = [
            Record(*mark, max(found.values(), key=OUTCOMES.index), len(found), release, today)
            for mark, found in complete.items()
        ]
        file = records.save(minor, self._merged(minor, now), self._root)
        self._summary.append(f"recorded {len(now)} on Kubernetes {release}: {file.relative_to(self._root)}")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say what was recorded."""
        for line in self._summary:
            terminalreporter.write_line(line)

    def _merged(self, minor: str, now: list[Record]) -> list[Record]:
        return records.merge(records.load(minor, self._root), now, all_marks(self._root))

    def _is_complete(self, mark: Mark) -> bool:
        found = self._outcomes[mark].keys() & self._finished
        return len(found) == self._expected[mark]


def _release() -> str:
    """The release of the API server under test: programs of the same minor version may be another one."""
    (server,) = (part for part in versions(default_minor()) if part.name == "kube-apiserver")
    return version_of(server, programs()[server.name]) or server.version
