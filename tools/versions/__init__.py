"""The page of Kubernetes versions: what Grove enforces on which version and scheduler, as tests showed."""
