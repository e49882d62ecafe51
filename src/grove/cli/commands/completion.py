"""`grove completion`: prints the script that completes command lines in a shell."""

from __future__ import annotations

import sys
from typing import Literal

from grove.cli.completion.scripts import SCRIPTS


def completion(shell: Literal["bash", "zsh", "fish"]) -> None:
    """Print the script that completes commands, options and names of the cluster in a shell.

    In bash: source <(grove completion bash). In zsh, after compinit: source <(grove completion zsh). In fish:
    grove completion fish | source. Write it into the file that the shell reads at its start to keep it.

    For kubectl grove, kubectl asks the program kubectl_complete-grove, which must be on PATH.

    Parameters
    ----------
    shell
        The shell: bash, zsh or fish.
    """
    sys.stdout.write(SCRIPTS[shell])
