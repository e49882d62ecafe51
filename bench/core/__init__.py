"""The operator beside two floors: a client that only makes pods, and one that fulfils the contract."""
