"""How to reach and authenticate to an API server: kubeconfig, service account, tokens, exec plugins."""
