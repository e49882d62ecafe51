"""CRDs generated from the wire types: properties, descriptions and structural schemas."""
