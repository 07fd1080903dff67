"""pyarrow's datasets, which read in parallel ahead of the consumer; the cutting into batches is ours."""
import numpy as np
import pyarrow as pa
from pyarrow import csv, dataset, json

FLOATS = [f"c{i}" for i in range(8)]
COLUMNS = pa.schema([(name, pa.float32()) for name in FLOATS] + [("label", pa.int32())])


def scanned(files, file_format, **options):
    """The record batches of all files, over and over."""
    source = dataset.dataset(files, format=file_format, schema=options.pop("schema", None))
    while True:
        yield from source.scanner(**options).to_batches()


def cut(blocks, batch):
    """float32[batch, 8] and int32[batch] out of record batches of any length; what is left of each is dropped."""
    for block in blocks:
        values = np.stack([block.column(name).to_numpy() for name in FLOATS], axis=1)
        labels = block.column("label").to_numpy()
        for start in range(0, block.num_rows - batch + 1, batch):
            yield values[start:start + batch], labels[start:start + batch]


def dataset_d(files, batch):
    types = csv.ConvertOptions(column_types=COLUMNS)
    return cut(scanned(files, dataset.CsvFileFormat(convert_options=types), schema=COLUMNS), batch)


def dataset_e(files, batch):
    """Strings stay pyarrow's: made Python's they cost a tenth more."""
    schema = pa.schema([("text", pa.string()), ("label", pa.int64())])
    options = dataset.JsonFragmentScanOptions(parse_options=json.ParseOptions(explicit_schema=schema))
    file_format = dataset.JsonFileFormat(options)
    for block in scanned(files, file_format, schema=schema):
        texts, labels = block.column("text"), block.column("label").to_numpy()
        for start in range(0, block.num_rows - batch + 1, batch):
            yield texts[start:start + batch], labels[start:start + batch]


def dataset_f(files, batch):
    return cut(scanned(files, "parquet", batch_size=1 << 16), batch)
