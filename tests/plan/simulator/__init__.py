"""An in-process API server and the actors of a cluster, for tests of plans."""
