"""Passes: one public function a file, from tile IR to plans and thread-level TIR."""
