"""polars: no loader, but the fastest reader of tables; the cutting into batches is ours."""
import polars as pl
import polars.selectors as columns

CHUNK = 1 << 16  # rows: larger than a batch, since each collected frame costs some 100 microseconds
TYPES = {f"c{i}": pl.Float32 for i in range(8)} | {"label": pl.Int32}


def cut(frame, batch):
    """float32[batch, 8] and int32[batch] of a lazy frame, over and over; what is left of a chunk is dropped."""
    while True:
        for block in frame.collect_batches(chunk_size=CHUNK, maintain_order=False):
            values = block.select(columns.float()).to_numpy(order="c")
            labels = block["label"].to_numpy()
            for start in range(0, len(block) - batch + 1, batch):
                yield values[start:start + batch], labels[start:start + batch]


def scan_d(files, batch):
    return cut(pl.scan_csv(files, schema=TYPES), batch)


def scan_f(files, batch):
    return cut(pl.scan_parquet(files), batch)
