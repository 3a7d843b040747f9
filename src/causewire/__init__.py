"""Causal message delivery: nothing is delivered before what it may depend on."""
