"""The stream of an open page: server-sent events."""
