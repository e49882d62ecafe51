"""Wire types: the kinds that Grove serves, and the fields of Kubernetes objects that it reads."""
