"""The applications on the kit."""
