"""The operator against two floors: a client that creates pods, and one that writes what the API requires."""
