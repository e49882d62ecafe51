"""The racks of a cluster, for `grove demo`."""
