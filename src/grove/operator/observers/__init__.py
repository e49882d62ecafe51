"""Reads the caches and returns the snapshots that plans are computed from."""
