"""What the dashboard shows: summaries of nodes, gangs and sets, kept up to date, and what changes of them."""
