"""The commands of `grove`, one module each."""
