"""Why something cannot be read, in words that a viewer may read. Pure.

The texts of the API server name namespaces, users and addresses. A viewer reads them only about namespaces
that they see, otherwise a general line; the log has the whole text.
"""

from __future__ import annotations

from msgspec import Struct

from grove.dashboard.rights import Rights

_FORBIDDEN = "(403"
MAY_NOT_LIST = "the dashboard may not list them"
CANNOT_READ = "the dashboard cannot read them"


class Problem(Struct, frozen=True):
    """Why a kind cannot be read."""

    resource: str
    text: str
    namespace: str = ""
    """Where it is read; empty: in the whole cluster."""
    forbidden: bool = False
    """Whether a watch knows that a right is missing. Of lists, the text says it."""

    @property
    def is_forbidden(self) -> bool:
        """Whether a right is missing."""
        return self.forbidden or _FORBIDDEN in self.text


def problem_text(problem: Problem, rights: Rights) -> str:
    """The problem as a viewer may read it."""
    if rights.reads_problems_of(problem.namespace):
        return problem.text
    return MAY_NOT_LIST if problem.is_forbidden else CANNOT_READ


def problem_line(problem: Problem, rights: Rights) -> str:
    """The problem and its kind, as a viewer may read it."""
    return f"{problem.resource}: {problem_text(problem, rights)}"
