"""PodGangs and what their scheduler is given."""
