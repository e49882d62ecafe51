"""Webhook serving certificates: issued, rotated, kept in a Secret and put into caBundles."""
