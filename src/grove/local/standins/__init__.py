"""Stand-ins for what KWOK's nodes do not run: init containers and NVIDIA's DRA driver."""
