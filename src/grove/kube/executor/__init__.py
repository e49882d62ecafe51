"""Carries out a plan: sends its intents in dependency order and reports the result of each."""
