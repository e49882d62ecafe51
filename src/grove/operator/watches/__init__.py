"""Event mapping: which change of which object enqueues which key, and after which delay."""
