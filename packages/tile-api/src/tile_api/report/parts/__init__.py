"""The parts of a report: each file makes one."""
