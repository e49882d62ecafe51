"""DynamoGraphDeployments: their types, rules, and translation. Pure; off unless switched on."""
