"""The programs of the control plane: found, downloaded or built."""
