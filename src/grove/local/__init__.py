"""The local control plane: finds or builds its programs, starts and stops them."""
