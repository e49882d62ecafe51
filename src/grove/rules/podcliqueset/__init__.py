"""Defaulting and validation of PodCliqueSets."""
