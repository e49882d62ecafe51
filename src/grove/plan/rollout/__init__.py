"""Rolling updates: replica order, update units, steps and progress."""
