"""Wire types, and every name, label and annotation: built and read here, nowhere else."""
