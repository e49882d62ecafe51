"""Benchmarks; results are ratios within one run."""
