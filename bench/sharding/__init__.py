"""A model of the operator in several processes, each for a range of namespaces: docs/decisions/shards.md."""
