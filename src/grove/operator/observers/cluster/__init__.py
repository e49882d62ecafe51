"""Reads nodes and pods of the whole cluster for placement: what is free, and what may become used."""
