"""Random functions of torch, beside what torch computes of them, gradients included."""
