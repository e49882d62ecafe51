"""Fabric domains: planning, state, events, status and channels."""
