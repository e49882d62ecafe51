"""What talking to Kubernetes costs: ours beside a bare HTTP loop and the two clients most programs use."""
