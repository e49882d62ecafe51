"""What `grove topology` prints: the domains of a cluster with their free GPUs."""
