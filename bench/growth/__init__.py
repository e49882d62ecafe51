"""How the costs of the operator grow: sizes up to 10,000 pods, restarts, many sets, fairness, and memory over
time."""
