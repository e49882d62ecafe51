"""From the raw JSON of a DynamoGraphDeployment to typed data, and from both versions to one graph."""
