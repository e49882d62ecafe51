"""Grove: gangs of pods that start together, sit close together and are kept together."""
