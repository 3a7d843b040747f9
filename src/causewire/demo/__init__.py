"""See causality break, hold, and why: what `causewire demo` shows.

chat      five friends who talk, each a process of its own
stage     lets them talk over a bad network, under some protocol
judge     checks and measures the traces that they leave, on Spark
telling   one violation, in the friends' own words
page      the report
"""
