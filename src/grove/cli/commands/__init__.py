"""The commands of `grove`, one module per command."""
