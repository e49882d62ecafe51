"""The informer cache: objects of one resource, kept current by a reflector and by our own writes."""
