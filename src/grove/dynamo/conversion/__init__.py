"""Converts DynamoGraphDeployments between v1alpha1 and v1beta1 as raw JSON; nothing is lost."""
