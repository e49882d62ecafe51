"""Gang termination: policy and history."""
