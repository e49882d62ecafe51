"""What the project needs to build itself; not part of the product."""
