"""One file a peer: each function returns an endless iterator over batches of one workload, at settings that the peer's
documentation names or that measured best (README.md tells the tunings). Batches are sequences of tensors."""
