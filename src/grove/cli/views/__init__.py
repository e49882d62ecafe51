"""What commands print about a set: read from the cluster, counted, laid out as text."""
