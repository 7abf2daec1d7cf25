"""Random functions of whole arrays: see `fuzz`."""
