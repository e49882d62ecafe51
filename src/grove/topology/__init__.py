"""Topology constraints of sets, resolved to node labels, and the state of topologies. Pure functions."""
