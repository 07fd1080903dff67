"""tf.train.Example {x: bytes[1024], y: int64} for peers that bring no parser: by protobuf's own, which is C."""
import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

Field = descriptor_pb2.FieldDescriptorProto


def message(name, *fields):
    made = descriptor_pb2.DescriptorProto(name=name)
    for number, (field, kind, type_name) in enumerate(fields, 1):
        made.field.add(name=field, number=number, type=kind, type_name=type_name,
                       label=Field.LABEL_REPEATED if field in ("value", "feature") else Field.LABEL_OPTIONAL)
    return made


def example_class():
    """The class of tf.train.Example, described here so that no peer needs TensorFlow for it."""
    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package="bench", syntax="proto3")
    file.message_type.extend([
        message("BytesList", ("value", Field.TYPE_BYTES, None)),
        message("FloatList", ("value", Field.TYPE_FLOAT, None)),
        message("Int64List", ("value", Field.TYPE_INT64, None)),
        message("Feature", ("bytes_list", Field.TYPE_MESSAGE, ".bench.BytesList"),
                ("float_list", Field.TYPE_MESSAGE, ".bench.FloatList"),
                ("int64_list", Field.TYPE_MESSAGE, ".bench.Int64List")),
        message("Features", ("feature", Field.TYPE_MESSAGE, ".bench.Features.FeatureEntry")),
        message("Example", ("features", Field.TYPE_MESSAGE, ".bench.Features")),
    ])
    entry = message("FeatureEntry", ("key", Field.TYPE_STRING, None), ("value", Field.TYPE_MESSAGE, ".bench.Feature"))
    entry.field[1].label = Field.LABEL_OPTIONAL
    entry.options.map_entry = True
    next(made for made in file.message_type if made.name == "Features").nested_type.append(entry)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("bench.Example"))


Example = example_class()


def parse(record):
    feature = Example.FromString(record).features.feature
    return np.frombuffer(feature["x"].bytes_list.value[0], dtype=np.uint8), feature["y"].int64_list.value[0]
