"""Readers of traces in any format: each yields events, and the rows that it refuses.

A row that cannot be understood never stops the rest and is never dropped: it is yielded
as `Refused`, with its file, its number there, and the reason.
"""
