"""Validation of resource claims that the parts of a set share."""
