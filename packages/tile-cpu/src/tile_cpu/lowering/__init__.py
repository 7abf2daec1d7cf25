"""From tile IR to thread-level TIR for x86."""
