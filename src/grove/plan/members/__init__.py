"""The pods of a clique: membership, state, counts, replacement and deletion."""
