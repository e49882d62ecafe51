"""Fabric domains: fast links between the accelerators of several nodes. One module per vendor, pure."""
