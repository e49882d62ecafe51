"""Leader election by a Lease, and the fence that stops writes once leadership has ended."""
