"""The applications on bare nodes: what had to be written before there was a kit."""
