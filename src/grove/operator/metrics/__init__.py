"""The Prometheus metrics of the leader."""
