"""The work queue: keys, fair turns between owners, delayed requeues and back-off."""
