"""Another operator of the same API in the same run: with a control plane and floors of its own."""
