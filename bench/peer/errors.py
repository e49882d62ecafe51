"""The error of a peer that cannot be measured."""


class PeerError(Exception):
    """What is wrong with the peer, and the remedy, in one line; the last lines of its log may follow."""
