"""Pipelines as data, and what runs them: passes by name, with their times and programs."""
