"""Which GPUs pods have: by requests, by claims, on their nodes."""
