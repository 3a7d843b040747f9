"""The pipeline: many runs, or much trace, on Spark.

By default on this machine (`local[*]`), on a cluster by its master or its Spark
Connect address, with the same code. `session` is the one place where a Spark
session is made; every transformation is a function from DataFrame to DataFrame
with a declared schema, and takes its session from the DataFrame it gets.

Needs PySpark and a Java runtime: `pip install "causewire[spark]"` brings both.
"""

from .errors import PipelineError
from .session import session

__all__ = ["PipelineError", "session"]
