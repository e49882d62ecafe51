"""Why a workload waits: a closed list of codes, each with evidence and a remedy. Pure."""
