"""The init container: holds a pod back until the cliques that it starts after are ready.

It runs in every pod that has something to wait for, so it is small: the standard library, and of ours only
words of the contract (docs/decisions/init-container.md).
"""
