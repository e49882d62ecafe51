"""Gang termination: breaches, decision, effects and history."""
