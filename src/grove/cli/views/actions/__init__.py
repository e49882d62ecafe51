"""What the commands print that act on workloads or check the installation."""
