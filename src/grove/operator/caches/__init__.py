"""The informer caches: which kinds are watched, with which indexes."""
