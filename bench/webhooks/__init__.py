"""Admissions a second of one core, beside a bare server that only says yes."""
