"""Names, labels, annotations and other well-known keys of the wire contract."""
