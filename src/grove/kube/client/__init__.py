"""The Kubernetes API client: requests, retries, label selectors, decoding of replies and watch streams."""
