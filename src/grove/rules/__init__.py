"""Admission rules as pure functions: defaults, validation, and protection of managed objects.

The webhooks (`grove.webhooks`) call them with raw JSON objects and `Facts` about the cluster. They read
nothing from the cluster themselves and never raise.
"""
