"""Text formats of Kubernetes: durations, quantities and timestamps."""
