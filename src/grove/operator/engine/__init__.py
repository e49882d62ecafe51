"""What every reconciler shares: errors, events, status writes, back-off and the state kept for each key."""
