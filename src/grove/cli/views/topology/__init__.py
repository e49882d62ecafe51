"""The domains of a cluster with their free GPUs, for `grove topology`: counted into views, and laid out."""
