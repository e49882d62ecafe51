"""The conversion webhook of DynamoGraphDeployments: its reviews, and its registration in the CRD."""
