"""The domains of a cluster with the use of their GPUs, as data."""
