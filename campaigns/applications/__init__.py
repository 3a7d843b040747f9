"""Four small applications, on bare nodes and on the kit, under the failures of a node.

`bare/` and `kit/` have the same four, with the same interface (`worker.py` has it). `matrix.py`
runs them as real processes, does something to one of them, and judges what the others have.
"""
