"""What the map-style peers of c need: a seeded order of all records, cut into batches and gathered batch by batch.

None of them offers it; written as well as numpy allows, since it is they who are measured and not this."""
import numpy as np

RECORD = 2048  # uint16 values


class Blocks:
    """Batch i of a random order of the records of all files. Safe to call from several threads."""

    def __init__(self, files, batch):
        self.maps = [np.memmap(file, dtype=np.uint16, mode="r").reshape(-1, RECORD) for file in files]
        self.starts = np.cumsum([0] + [len(records) for records in self.maps])
        order = np.random.default_rng(1).permutation(self.starts[-1])
        order = order[:len(order) // batch * batch].reshape(-1, batch)
        # Within a batch by place: one gather a file, straight to where it belongs.
        self.order = np.sort(order, axis=1)

    def __len__(self):
        return len(self.order)

    def __getitem__(self, i):
        records = self.order[i % len(self.order)]
        out = np.empty((len(records), RECORD), dtype=np.uint16)
        ends = np.searchsorted(records, self.starts)
        for file, start in enumerate(self.starts[:-1]):
            low, high = ends[file], ends[file + 1]
            # mode="clip": with "raise" numpy gathers into a buffer first, and copies.
            np.take(self.maps[file], records[low:high] - start, axis=0, out=out[low:high], mode="clip")
        return out
