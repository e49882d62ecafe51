"""Measures how soon commands answer, on a cluster of 500 nodes and 5,000 pods."""
