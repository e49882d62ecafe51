"""How a placement is found: bounds first, then without backtracking, then a complete search."""
