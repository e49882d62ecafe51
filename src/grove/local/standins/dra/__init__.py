"""dra-standin: a stand-in for NVIDIA's DRA driver on KWOK's nodes.

Kubernetes itself creates and allocates the claims of pods. The stand-in does what the driver does: it
publishes a channel for each GPU node, creates the claim template of each ComputeDomain, adds nodes to domains
when pods are scheduled to them, and prepares those pods, which KWOK does not report ready before.

Not simulated: IMEX daemons and their DaemonSet, device files, checkpoints, GPU devices.

Annotations that inject faults: on a node `dra-standin/never-ready`, `dra-standin/flip` (becomes not ready),
`dra-standin/delay` (seconds until ready), `dra-standin/clique` (another NVLink partition) and
`dra-standin/no-channel` (publishes no channel); on a domain `dra-standin/skip-template`.
"""
