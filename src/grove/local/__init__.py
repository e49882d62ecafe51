"""The local control plane: find or build its parts, start them, stop them."""
