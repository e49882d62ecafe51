"""Admission as pure functions: what is filled in, what is refused and why, who may touch managed objects."""
