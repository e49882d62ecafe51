"""Completion of command lines in bash, zsh and fish, and for the plug-in of kubectl."""
