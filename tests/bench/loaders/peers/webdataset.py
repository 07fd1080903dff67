"""WebDataset (webdataset/webdataset), whose samples Python decodes."""
import numpy as np
import simplejpeg
import webdataset


def stack(samples):
    images, labels = zip(*samples)
    return np.stack(images), np.array(labels)


def simplejpeg_b(files, batch):
    dataset = webdataset.WebDataset(files, shardshuffle=False).repeat().to_tuple("jpg", "cls")
    dataset = dataset.map_tuple(simplejpeg.decode_jpeg, int)
    return iter(dataset.batched(batch, collation_fn=stack, partial=False))
