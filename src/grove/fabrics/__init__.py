"""Fabrics: domains of fast links between the accelerators of several nodes. One module a vendor, pure."""
