"""Where a gang fits: a domain for each unit and a node for each pod, or why there is none. Pure functions."""
