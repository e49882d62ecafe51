"""Tests of grove.dry_run."""
