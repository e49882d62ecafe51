"""Objects as data for people: sets, statuses, topologies. Commands print them, the dashboard draws them."""
