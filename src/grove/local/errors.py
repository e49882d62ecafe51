"""The one error this room raises: a line for the person at the terminal, naming the remedy."""


class LocalError(Exception):
    """Something about the local cluster that its user can mend."""
