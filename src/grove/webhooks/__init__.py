"""Admission webhooks: answer reviews with the verdicts of `grove.rules`, over TLS with automatic rotation."""
