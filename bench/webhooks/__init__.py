"""Admission requests per second of one core, against a bare server that admits everything."""
