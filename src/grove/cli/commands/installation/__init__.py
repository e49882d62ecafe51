"""Commands that check an installation, or collect what support needs to know of it."""
