"""A bit of a Parquet file that flips, so that only a checksum can tell."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def flip_a_bit(path: Path, column: int) -> None:
    """Spoil a value of the first row group in a way that Arrow reads without a complaint."""
    whole = path.read_bytes()
    before = pq.read_table(path)
    with pq.ParquetFile(path) as file:
        chunk = file.metadata.row_group(0).column(column)
    end = chunk.data_page_offset + chunk.total_compressed_size
    for at in range(end - 1, chunk.data_page_offset, -1):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        try:
            if not pq.read_table(path).equals(before):
                return
        except (pa.ArrowException, OSError):
            continue
    raise AssertionError("whichever bit flips, Arrow finds it by itself")
