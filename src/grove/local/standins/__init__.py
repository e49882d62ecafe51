"""Stand-ins for what KWOK's nodes do not run: init containers and the DRA driver."""
