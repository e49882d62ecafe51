"""Why a workload waits, for `grove explain`: its reasons, what each domain lacks, and what would help."""
