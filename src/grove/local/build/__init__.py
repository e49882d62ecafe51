"""Finds, downloads or builds the programs of the control plane."""
