"""Every causal delivery protocol of the papers, as sans-IO state machines.

Standard library only: no clock, no randomness, no I/O, no logging.
"""
