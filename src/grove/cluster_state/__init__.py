"""The state of a cluster as one value, read from the API server, a snapshot file or a described shape."""
