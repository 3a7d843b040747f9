"""Arguments of the commands that run on Spark."""

from __future__ import annotations

import argparse

from .errors import CommandError

__all__ = ["add_spark_arguments", "config_of"]


def add_spark_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --master and --conf."""
    parser.add_argument(
        "--master",
        metavar="URL",
        help="the Spark master: local[4], spark://host:7077, yarn, sc://host; default: that of "
        "spark-submit, or this machine",
    )
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting of Spark, as of spark-submit; may be given several times",
    )


def config_of(args: argparse.Namespace) -> dict[str, str]:
    """Return the settings of Spark that the arguments give."""
    config = {}
    for setting in args.conf:
        key, mark, value = setting.partition("=")
        if not mark or not key.startswith("spark."):
            raise CommandError(f"--conf: {setting!r} is not of the form spark.KEY=VALUE")
        config[key] = value
    return config
