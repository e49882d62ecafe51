"""Admission: reviews in, the rules' verdicts out, over TLS that renews itself."""
