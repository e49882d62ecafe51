"""The objects that a replica should have, computed from the set alone."""
