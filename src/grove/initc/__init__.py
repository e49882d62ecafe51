"""The init container of the startup order: exits once the cliques that its pod starts after are ready.

It runs in every pod that waits for other cliques, so it is small: it imports the standard library and, of
this project, only the constants of `grove.api.naming` (docs/decisions/init-container.md).
"""
