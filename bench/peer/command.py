"""The command of a peer: words as in a shell, without a shell, so that its process is the operator itself."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import NamedTuple

from bench.peer.errors import PeerError

KUBECONFIG = "{kubeconfig}"


class Command(NamedTuple):
    """A program and its arguments, as given."""

    words: tuple[str, ...]

    @property
    def name(self) -> str:
        """The program without its folder: results name no folder of the machine."""
        return Path(self.words[0]).name

    def arguments(self, kubeconfig: Path) -> list[str]:
        """The words with the path of the kubeconfig. Other braces stay: arguments may be JSON."""
        return [word.replace(KUBECONFIG, str(kubeconfig)) for word in self.words]


def parse(text: str) -> Command:
    """Split the command and find its program. Raises PeerError."""
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise PeerError(f"PEER cannot be split into words ({error}): close every quote") from None
    if not words:
        raise PeerError("PEER is empty: give the command that starts the operator")
    if shutil.which(words[0]) is None:
        raise PeerError(f"PEER starts with {words[0]}, which is no program: give its path, or add it to PATH")
    return Command(words)
