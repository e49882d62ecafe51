"""The operator: wires caches, plans and the executor together, and keeps them running."""
