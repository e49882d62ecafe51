"""DynamoGraphDeployments: types, admission, and rendering into workloads. Pure; disabled by default."""
