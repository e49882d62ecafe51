"""What pods need from nodes: resources, devices and volumes."""
