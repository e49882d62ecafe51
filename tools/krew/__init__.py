"""Builds the archives of the plug-in `kubectl grove` for krew, and their manifest."""
