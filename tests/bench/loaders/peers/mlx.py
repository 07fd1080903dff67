"""mlx-data (ml-explore/mlx-data)."""
import numpy as np
from mlx import data

from peers import spread, tar_index

THREADS = 2
ENDLESS = 1 << 30


def threads_b(files, batch):
    """Its own tar reader and JPEG decoder, which lead here. The labels come with the list of images."""
    images = [{"tar": file.encode(), "image": name, "label": label}
              for file in files for name, _, _, label in tar_index.samples(file)]
    stream = data.buffer_from_vector(images).to_stream().repeat(ENDLESS)
    stream = stream.read_from_tar("tar", "image", "image", from_key=True).load_image("image", from_memory=True)
    return ((one["image"], one["label"]) for one in stream.batch(batch).prefetch(2 * THREADS, THREADS))


def blocks_c(files, batch):
    blocks = spread.Blocks(files, batch)
    stream = data.buffer_from_vector([{"block": i} for i in range(len(blocks))]).to_stream().repeat(ENDLESS)
    # It knows no uint16: as bytes.
    stream = stream.key_transform("block", lambda i: blocks[int(i)].view(np.uint8))
    return stream.prefetch(4 * THREADS, THREADS)
