"""Cliques and groups of a replica: their pods, members and health."""
