"""dra-standin: a stand-in for NVIDIA's DRA driver on KWOK's nodes.

Kubernetes itself creates and allocates the claims of pods. The stand-in does what the driver does: it
publishes a channel for each GPU node, creates the claim template of each ComputeDomain, adds nodes to domains
when pods are scheduled to them, and prepares those pods, which KWOK does not report ready before.

Not simulated: IMEX daemons and their DaemonSet, device files, checkpoints, GPU devices.

Annotations that inject faults:

node          `never-ready`, `flip` (becomes not ready), `delay` (seconds until ready), `clique` (another
              NVLink partition), `no-channel` (publishes none), `keep-label` (keeps the label of a domain that
              it left)
domain        `skip-template` (gets no claim template), `template-delay` (seconds until it gets one)
DeviceClass   of channels, for all domains: `skip-template`, `template-delay`, and `dead-controller`: nothing
              is done for any domain

each after `dra-standin/`.
"""
