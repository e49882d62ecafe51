"""The process of its own that serves the admission webhooks, and what the operator needs of it."""
