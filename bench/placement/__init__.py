"""Speed and quality of the placement of gangs, on random clusters."""
