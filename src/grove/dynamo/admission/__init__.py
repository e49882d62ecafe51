"""Defaulting and validation of DynamoGraphDeployments."""
