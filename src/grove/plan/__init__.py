"""Pure planning functions: a snapshot and the time in; intents, status updates, events and errors out."""
