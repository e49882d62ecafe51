"""What would make room for a gang that waits for nodes."""
