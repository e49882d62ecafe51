"""Commands that show a cluster and explain it: `grove topology`, `grove explain`."""
