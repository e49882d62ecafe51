"""The dashboard: one web page that shows where gangs are, what waits and why, and what just happened."""
