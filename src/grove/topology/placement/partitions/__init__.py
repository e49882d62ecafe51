"""Values of partitions for a gang: the room by value, combinations of values, and the choice among them."""
