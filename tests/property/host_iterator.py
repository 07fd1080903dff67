"""TensorFlow's multi-device iterator without the copies to devices.

OwnedMultiDeviceIterator puts a data set with several traced functions between its kernel, which deals elements to
replicas in turn, and each device. On the processor that carries the same values to the same place, and is most of the
cost of a small case. This one asks the kernel itself.
"""
import tensorflow as tf
from tensorflow.python.data.ops import optional_ops
from tensorflow.python.data.util import structure
from tensorflow.python.distribute import input_lib
from tensorflow.python.ops import gen_dataset_ops


class HostIterator:
    """What _SingleWorkerOwnedDatasetIterator asks of an OwnedMultiDeviceIterator, eagerly."""

    def __init__(self, dataset, devices, source_device):
        options = tf.data.Options()
        options.experimental_distribute.num_devices = len(devices)
        dataset = dataset.with_options(options)
        self._dataset = dataset
        self._ended = [False] * len(devices)
        self._resource = gen_dataset_ops.anonymous_multi_device_iterator_v3(devices=devices, **dataset._flat_structure)
        self._incarnation = gen_dataset_ops.multi_device_iterator_init(dataset._variant_tensor, self._resource,
                                                                       max_buffer_size=1)

    def _next_of(self, replica):
        if self._ended[replica]:
            raise tf.errors.OutOfRangeError(None, None, "the replica's data has ended")
        try:
            tensors = gen_dataset_ops.multi_device_iterator_get_next_from_shard(
                self._resource, replica, self._incarnation, **self._dataset._flat_structure)
        except tf.errors.OutOfRangeError:
            self._ended[replica] = True
            raise
        return structure.from_compatible_tensor_list(self._dataset.element_spec, tensors)

    def get_next(self):
        return [self._next_of(replica) for replica in range(len(self._ended))]

    def get_next_as_optional(self):
        return [self._optional_of(replica) for replica in range(len(self._ended))]

    def _optional_of(self, replica):
        try:
            return optional_ops.Optional.from_value(self._next_of(replica))
        except tf.errors.OutOfRangeError:
            return optional_ops.Optional.empty(self._dataset.element_spec)


def install():
    """Makes tf.distribute use it in this process."""
    input_lib.multi_device_iterator_ops.OwnedMultiDeviceIterator = HostIterator
