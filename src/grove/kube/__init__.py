"""A small Kubernetes runtime: client, cache, queue, executor. It knows no type or rule of Grove."""
