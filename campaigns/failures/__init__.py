"""What the living notice when a process fails: real processes, real faults, one table."""
