"""Text formats: durations, quantities and timestamps of Kubernetes; lists of names in messages."""
