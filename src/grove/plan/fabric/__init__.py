"""Fabric domains: nodes whose accelerators are joined by fast links, such as NVIDIA's ComputeDomains.

observe   `resolution` resolves which domains a set requires and the state of each; the observer puts the
          result into the snapshot of a replica, the input of a set and the snapshot of a domain
plan      `planner`: one domain is created, repaired or deleted; `events`: what its sets are notified of
          `replica_domains`: which pods of a replica wait; `channels`: why pods in domains find no node;
          `problems`: why the pods of a domain cannot use it
publish   `status`: `status.computeDomains` and the condition `ComputeDomainsReady` of a set
"""
