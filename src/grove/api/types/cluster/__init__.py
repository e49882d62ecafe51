"""Objects of the whole cluster, with the fields that placement reads."""
