"""What nox sessions run beside tests: which tests a change can break, mutants, figures."""
