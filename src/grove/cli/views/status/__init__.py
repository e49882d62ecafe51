"""What `grove status` and `grove events` print."""
