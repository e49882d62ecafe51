"""dra-standin: stands in for NVIDIA's DRA driver on KWOK's nodes, and says so.

Kubernetes itself makes the claims of pods and allocates them; this only does what the driver does around it:
publishes a channel for each GPU node, makes the claim template of each ComputeDomain, takes nodes into
domains as pods land on them, and prepares those pods, which KWOK keeps from being ready until then.

Not played: IMEX daemons and their DaemonSet, device files, checkpoints, GPU devices.

Annotations to break things with: on a node `dra-standin/never-ready`, `dra-standin/flip` (not ready any
more), `dra-standin/delay` (seconds until ready), `dra-standin/clique` (another NVLink partition) and
`dra-standin/no-channel` (it publishes none); on a domain `dra-standin/skip-template`.
"""
