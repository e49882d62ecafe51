"""Scheduler backends: the objects and pod fields that each scheduler needs. One module per backend, pure."""
