"""Topologies of the cluster: what workloads may ask of them, and what it means in node labels. Pure."""
