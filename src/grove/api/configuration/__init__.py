"""The operator's configuration file: its types, and how it is loaded and checked."""
