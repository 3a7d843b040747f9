"""Long runs that look for failures: seeded, bounded, each repeatable by its seed."""
