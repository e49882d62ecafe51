"""Tests of grove.cluster_state."""
