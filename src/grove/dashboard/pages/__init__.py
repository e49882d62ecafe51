"""The data of single pages: workloads, explanations, nodes, search."""
