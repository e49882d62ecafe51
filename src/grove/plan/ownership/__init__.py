"""Ownership, repair and adoption of a set's objects."""
