"""Software pipelines: bodies taken apart, dependences, schedules, and loops put together."""
