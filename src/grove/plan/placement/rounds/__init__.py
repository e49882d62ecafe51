"""Rounds of placement: decisions on all gangs that wait, one after another."""
