"""One local cluster: start, stop and inspect its processes and nodes."""
