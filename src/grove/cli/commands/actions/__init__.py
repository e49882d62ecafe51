"""Commands that act on workloads, or check the installation."""
