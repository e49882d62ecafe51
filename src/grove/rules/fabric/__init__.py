"""Defaulting and validation of fabric domains, such as multi-node NVLink."""
