"""Decisions on one workload, pure: a snapshot and the time in, intents and status out."""
