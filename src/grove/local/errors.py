"""The error that this package raises: one line for the user, which names the remedy."""


class LocalError(Exception):
    """A problem of the local cluster that the user can fix."""
