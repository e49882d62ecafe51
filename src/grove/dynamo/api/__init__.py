"""Wire types of Dynamo's kinds, of Kueue's topologies and of image pull secrets; the CRDs."""
