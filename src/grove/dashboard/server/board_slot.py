"""The board of a server, which begins to serve before everything is read."""

from __future__ import annotations

from http import HTTPStatus

from grove.dashboard.board import Board
from grove.dashboard.pages.errors import PageError


class BoardSlot:
    """Has the board as soon as there is one."""

    def __init__(self, board: Board | None = None) -> None:
        self._board = board

    def fill(self, board: Board) -> None:
        """The board is there."""
        self._board = board

    @property
    def is_ready(self) -> bool:
        """Whether the board is there, with everything that can be read."""
        return self._board is not None and self._board.is_settled

    @property
    def board(self) -> Board:
        """The board. Raises PageError (503)."""
        if self._board is None:
            line = "the dashboard still reads the cluster: try again in some seconds"
            raise PageError(HTTPStatus.SERVICE_UNAVAILABLE, line)
        return self._board
