"""The HTTP server of the dashboard."""
