"""Plugins: how backends, rules and observers are found and asked."""
