"""Schedulers: what each wants to be told about gangs, pods and topologies. One module a backend, pure."""
