"""Logs of several containers: which ones, their streams, and how they are merged and printed."""
