"""Plans converge from any state, after crashes and on stale caches."""
