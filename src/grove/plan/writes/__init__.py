"""Collecting and building the writes of a plan."""
