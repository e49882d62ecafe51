"""The cost of API calls: our client against a bare HTTP loop and the two most common clients."""
