"""Runs the operator's planning on the state of a cluster in memory: what would happen if an object were
applied. Nothing is written to a cluster."""
