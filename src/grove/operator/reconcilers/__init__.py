"""One reconciler for each kind of key, and the actions that only some passes need."""
