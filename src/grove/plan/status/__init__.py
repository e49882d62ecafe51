"""Statuses of cliques, groups and replicas, and their conditions."""
