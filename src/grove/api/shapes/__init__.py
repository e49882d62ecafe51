"""Compares JSON and YAML values with the types of their fields, and reports all differences by path."""
