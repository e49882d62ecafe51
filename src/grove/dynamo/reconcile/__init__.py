"""One reconcile pass over one deployment: writes, status, events."""
