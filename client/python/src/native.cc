// The native module headrace._native: the C ABI as Python classes. What users see is headrace/*.py.
//
// A batch is shared by its Python object, its buffers and every view a framework takes of them; its slot goes back to
// the loader with the last one, on whatever thread that happens.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "client/python/src/dlpack.h"
#include "client/python/src/errors.h"
#include "client/python/src/numpy_array.h"
#include "client/python/src/serve.h"
#include "headrace/client.h"

namespace headrace::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

constexpr int64_t kSliceMs = 100;  // between two looks at signals

using SharedBatch = std::shared_ptr<headrace_batch>;

nb::tuple ToTuple(const int64_t* values, int32_t count) {
  PyObject* tuple = PyTuple_New(count);
  if (tuple == nullptr) throw nb::python_error();
  for (int32_t i = 0; i < count; ++i) PyTuple_SetItem(tuple, i, PyLong_FromLongLong(values[i]));
  return nb::steal<nb::tuple>(tuple);
}

constexpr int64_t kNoStream = -1;  // DLPack's: the consumer asks for no order

// One tensor of a batch, in place, or a part of it.
struct Buffer {
  SharedBatch batch;
  headrace_tensor tensor;
  std::vector<int64_t> part_shape;  // of a part, in place of the tensor's
  bool readonly = false;
  int32_t index = 0;  // of the component

  const int64_t* shape() const { return part_shape.empty() ? tensor.shape : part_shape.data(); }

  // A part whose first value is at `data`. Its strides are the tensor's from `strides` on.
  Buffer Part(headrace_dtype dtype, void* data, std::vector<int64_t> shape, const int64_t* strides) const {
    Buffer part{batch, tensor, std::move(shape)};
    part.tensor.dtype = dtype;
    part.tensor.data = data;
    part.tensor.nbytes = dtype.bits / 8;
    for (const int64_t dim : part.part_shape) part.tensor.nbytes *= dim;
    part.tensor.ndim = static_cast<int32_t>(part.part_shape.size());
    part.tensor.strides = strides;
    part.tensor.row_splits = nullptr;
    return part;
  }

  // Of a tensor of variable length: all its values, and where its rows begin.
  Buffer Values() const {
    std::vector<int64_t> shape = {tensor.num_values};
    if (std::strcmp(tensor.dtype.name, "string") == 0) {
      return Part({"uint8", tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes}, tensor.data, std::move(shape),
                  kOne);
    }
    shape.insert(shape.end(), tensor.shape + 2, tensor.shape + tensor.ndim);
    return Part(tensor.dtype, tensor.data, std::move(shape), tensor.strides + 1);
  }
  Buffer RowSplits() const {
    int64_t rows = 1;
    const bool ragged = tensor.ndim > 1 && tensor.shape[1] < 0;
    for (int32_t d = 0; d < (ragged ? 1 : tensor.ndim); ++d) rows *= tensor.shape[d];
    Buffer splits = Part({"int64", 0, 64, 1}, const_cast<int64_t*>(tensor.row_splits), {rows + 1}, kOne);
    splits.readonly = true;
    return splits;
  }

  // Rows [begin, end) of a tensor of one length. REQUIRES: they are there.
  Buffer Rows(int64_t begin, int64_t end) const {
    std::vector<int64_t> shape(this->shape(), this->shape() + tensor.ndim);
    shape[0] = end - begin;
    auto* const data = static_cast<uint8_t*>(tensor.data) + begin * tensor.strides[0] * (tensor.dtype.bits / 8);
    return Part(tensor.dtype, data, std::move(shape), tensor.strides);
  }

  bool on_device() const { return tensor.device_type != kDLCPU; }

  // Copies the whole tensor to host memory.
  void CopyTo(uintptr_t address) const {
    headrace_status status;
    {
      nb::gil_scoped_release released;
      status = headrace_batch_copy_tensor(batch.get(), index, reinterpret_cast<void*>(address));
    }
    Check(status);
  }

  // A capsule that holds the batch by itself. `as_bytes`: booleans as uint8, for consumers that know no other. The
  // consumer uses a tensor on a GPU by `stream`, which is ordered behind its arrival.
  nb::object Capsule(bool as_bytes, int64_t stream) const {
    if (on_device() && stream != kNoStream) {
      Check(headrace_batch_use_on_stream(batch.get(), reinterpret_cast<void*>(stream)));
    }
    struct Managed {
      DLManagedTensor tensor;
      Buffer buffer;
    };
    auto managed = std::make_unique<Managed>(Managed{{}, *this});
    managed->tensor.manager_ctx = managed.get();
    managed->tensor.deleter = [](DLManagedTensor* self) { delete static_cast<Managed*>(self->manager_ctx); };
    const uint8_t code = as_bytes ? 1 : tensor.dtype.code;
    managed->tensor.dl_tensor = {tensor.data,
                                 {tensor.device_type, tensor.device_id},
                                 tensor.ndim,
                                 {code, tensor.dtype.bits, tensor.dtype.lanes},
                                 const_cast<int64_t*>(managed->buffer.shape()),
                                 const_cast<int64_t*>(tensor.strides),
                                 0};
    PyObject* capsule = PyCapsule_New(&managed->tensor, "dltensor", [](PyObject* unused) {
      if (PyCapsule_IsValid(unused, "dltensor") == 0) return;  // a consumer took it, and will call the deleter
      auto* left = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(unused, "dltensor"));
      left->deleter(left);
    });
    if (capsule == nullptr) throw nb::python_error();
    managed.release();
    return nb::steal(capsule);
  }

 private:
  static constexpr int64_t kOne[] = {1};
};

// A buffer's bytes by Python's buffer protocol. Not the buffer itself, since numpy would prefer that to its types.
struct Memory {
  Buffer buffer;

  static int GetBytes(PyObject* self, Py_buffer* view, int flags) {
    const Buffer& bytes = nb::inst_ptr<Memory>(self)->buffer;
    return PyBuffer_FillInfo(view, self, bytes.tensor.data, bytes.tensor.nbytes, bytes.readonly ? 1 : 0, flags);
  }
};

PyType_Slot memory_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(Memory::GetBytes)}, {0, nullptr}};

headrace_tensor TensorOf(const headrace_batch* batch, int32_t index) {
  headrace_tensor tensor{};
  tensor.size = sizeof(tensor);
  Check(headrace_batch_tensor(batch, index, &tensor));
  return tensor;
}

struct Batch {
  SharedBatch handle;

  Buffer At(int32_t index) const { return {handle, TensorOf(handle.get(), index), {}, false, index}; }
};

using Position = std::tuple<int64_t, int64_t, uint64_t>;  // epoch, step, seed

// What makes numpy arrays: see numpy_array.h, and headrace/_numpy.py, which has one for all.
class NumpyArrays {
 public:
  NumpyArrays(nb::object capsule, nb::object ndarray)
      : capsule_(std::move(capsule)), ndarray_(std::move(ndarray)), api_(capsule_.ptr(), ndarray_.ptr()) {
    if (!api_.ok()) throw nb::python_error();
  }

  // An array of a numpy.dtype over a tensor of `shape` in host memory, which `owner` keeps.
  nb::object Over(const headrace_tensor& tensor, const int64_t* shape, bool readonly, nb::handle dtype,
                  nb::handle owner) const {
    PyObject* const made = api_.Make(dtype.ptr(), tensor.data, tensor.ndim, shape, readonly, owner.ptr());
    if (made == nullptr) throw nb::python_error();
    return nb::steal(made);
  }
  // The same of a Buffer, which the array keeps.
  nb::object View(nb::handle self, nb::handle dtype) const {
    const auto& buffer = nb::cast<const Buffer&>(self);
    return Over(buffer.tensor, buffer.shape(), buffer.readonly, dtype, self);
  }

 private:
  nb::object capsule_;
  nb::object ndarray_;
  NumpyApi api_;
};

class Iterator {
 public:
  explicit Iterator(headrace_iterator* handle)
      : handle_(handle, headrace_iterator_free), batches_(static_cast<size_t>(headrace_iterator_width(handle))) {}

  // The next step's batches, or None at the end of the epoch.
  nb::object Next(bool as_optional, int64_t timeout_ms) {
    if (!Advance(as_optional, timeout_ms)) return nb::none();
    PyObject* step = PyTuple_New(static_cast<Py_ssize_t>(batches_.size()));
    if (step == nullptr) throw nb::python_error();
    for (size_t i = 0; i < batches_.size(); ++i) {
      SharedBatch batch(batches_[i], headrace_batch_free);
      PyTuple_SetItem(step, static_cast<Py_ssize_t>(i), nb::cast(Batch{std::move(batch)}).release().ptr());
    }
    return nb::steal(step);
  }

  // The same of one replica's iterator. The caller frees it; null at the end.
  headrace_batch* NextOfReplica() { return Advance(false, -1) ? batches_[0] : nullptr; }

  Position At() const {
    headrace_position position{};
    position.size = sizeof(position);
    Check(headrace_iterator_position(handle_.get(), &position));
    return {position.epoch, position.step, position.seed};
  }

 private:
  // Waits for the next step, whose batches are then in batches_. false: the epoch is over.
  bool Advance(bool as_optional, int64_t timeout_ms) {
    // A ready step is taken without letting go of the GIL, which another thread might keep for milliseconds.
    headrace_status status = Take(as_optional, 0);
    int64_t waited_ms = 0;
    while (status == HEADRACE_TIMED_OUT && (timeout_ms < 0 || waited_ms < timeout_ms)) {
      const int64_t slice_ms = timeout_ms < 0 ? kSliceMs : std::min(kSliceMs, timeout_ms - waited_ms);
      {
        nb::gil_scoped_release released;
        status = Take(as_optional, slice_ms);
      }
      waited_ms += slice_ms;
      if (status == HEADRACE_TIMED_OUT && PyErr_CheckSignals() != 0) throw nb::python_error();
    }
    if (status == HEADRACE_END) return false;
    Check(status);
    return true;
  }
  headrace_status Take(bool as_optional, int64_t timeout_ms) {
    if (!as_optional) return headrace_next(handle_.get(), timeout_ms, batches_.data());
    int32_t has_value = 0;
    headrace_status status = headrace_next_as_optional(handle_.get(), timeout_ms, batches_.data(), &has_value);
    return status == HEADRACE_OK && has_value == 0 ? HEADRACE_END : status;
  }

  std::shared_ptr<headrace_iterator> handle_;
  std::vector<headrace_batch*> batches_;
};

// Batches of one replica as dictionaries of numpy arrays. Where numpy can look into every component they are made
// without a step in Python, and with as few in C++: what this runs through is cold after a trainer's step.
class NumpyIterator {
 public:
  // `dtypes`: numpy's of each component; None where `convert` makes of its Buffer what takes the array's place.
  NumpyIterator(Iterator iterator, nb::tuple names, nb::tuple dtypes, NumpyArrays numpy, nb::object convert)
      : iterator_(std::move(iterator)), numpy_(std::move(numpy)), convert_(std::move(convert)) {
    for (size_t i = 0; i < names.size(); ++i) {
      components_.push_back({names[i], dtypes[i]});
      converts_ = converts_ || components_.back().dtype.is_none();
    }
  }

  // Python's tp_iternext: null, with no error set, at the end.
  static PyObject* Next(PyObject* self) noexcept {
    try {
      return nb::inst_ptr<NumpyIterator>(self)->Next();
    } catch (nb::python_error& error) {
      error.restore();
    } catch (const std::bad_alloc&) {
      PyErr_NoMemory();
    } catch (const std::exception& error) {
      PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    return nullptr;
  }

 private:
  struct Component {
    nb::object name;
    nb::object dtype;
  };

  PyObject* Next() {
    headrace_batch* const batch = iterator_.NextOfReplica();
    if (batch == nullptr) return nullptr;
    return (converts_ ? Converted({SharedBatch(batch, headrace_batch_free)}) : Arrays(batch)).release().ptr();
  }

  nb::object Arrays(headrace_batch* batch) const {
    PyObject* const capsule = PyCapsule_New(batch, nullptr, [](PyObject* self) {
      headrace_batch_free(static_cast<headrace_batch*>(PyCapsule_GetPointer(self, nullptr)));
    });
    if (capsule == nullptr) {
      headrace_batch_free(batch);
      throw nb::python_error();
    }
    const nb::object owner = nb::steal(capsule);
    nb::object arrays = nb::steal(PyDict_New());
    for (size_t i = 0; i < components_.size(); ++i) {
      const headrace_tensor tensor = TensorOf(batch, static_cast<int32_t>(i));
      Put(arrays, components_[i], numpy_.Over(tensor, tensor.shape, false, components_[i].dtype, owner));
    }
    return arrays;
  }

  nb::object Converted(const Batch& batch) const {
    nb::object arrays = nb::steal(PyDict_New());
    for (size_t i = 0; i < components_.size(); ++i) {
      const nb::object buffer = nb::cast(batch.At(static_cast<int32_t>(i)));
      const nb::object& dtype = components_[i].dtype;
      Put(arrays, components_[i], dtype.is_none() ? convert_(buffer) : numpy_.View(buffer, dtype));
    }
    return arrays;
  }

  static void Put(const nb::object& arrays, const Component& component, const nb::object& value) {
    if (!arrays.is_valid() || PyDict_SetItem(arrays.ptr(), component.name.ptr(), value.ptr()) != 0) {
      throw nb::python_error();
    }
  }

  Iterator iterator_;
  NumpyArrays numpy_;
  nb::object convert_;
  std::vector<Component> components_;
  bool converts_ = false;  // some component, or all
};

PyType_Slot numpy_iterator_slots[] = {
    {Py_tp_iter, reinterpret_cast<void*>(PyObject_SelfIter)},
    {Py_tp_iternext, reinterpret_cast<void*>(static_cast<PyObject* (*)(PyObject*) noexcept>(NumpyIterator::Next))},
    {0, nullptr}};

class Dataset {
 public:
  static Dataset Connect(const std::optional<std::string>& directory, int64_t timeout_ms, bool takes_device,
                         const std::vector<int32_t>& gpus, int32_t device_batches) {
    headrace_connect_options options{};
    options.size = sizeof(options);
    options.directory = directory ? directory->c_str() : nullptr;
    options.timeout_ms = timeout_ms;
    options.interrupted = LookAtSignals;
    options.takes_device = takes_device ? 1 : 0;
    options.num_gpus = static_cast<int32_t>(gpus.size());
    options.gpus = gpus.data();
    options.device_batches = device_batches;
    headrace_dataset* handle = nullptr;
    headrace_status status;
    {
      nb::gil_scoped_release released;
      status = headrace_connect(&options, &handle);
    }
    Check(status);
    return Dataset(handle);
  }

  Iterator Iterate(int32_t replica, const std::optional<Position>& start) const {
    headrace_iterator* iterator = nullptr;
    headrace_status status;
    headrace_position position{};
    if (start) position = {sizeof(position), std::get<0>(*start), std::get<1>(*start), std::get<2>(*start)};
    {
      nb::gil_scoped_release released;
      status = start ? headrace_iterator_create_at(handle_.get(), replica, &position, &iterator)
                     : headrace_iterator_create(handle_.get(), replica, &iterator);
    }
    Check(status);
    return Iterator(iterator);
  }

  // [(name, dtype, shape, ragged), ...]
  nb::list Components() const {
    nb::list components;
    for (int32_t i = 0; i < headrace_num_components(handle_.get()); ++i) {
      headrace_tensor_spec spec{};
      spec.size = sizeof(spec);
      Check(headrace_component(handle_.get(), i, &spec));
      components.append(nb::make_tuple(spec.name, spec.dtype.name, ToTuple(spec.shape, spec.ndim), spec.ragged != 0));
    }
    return components;
  }

  nb::dict InputContext() const {
    headrace_input_context context{};
    context.size = sizeof(context);
    Check(headrace_get_input_context(handle_.get(), &context));
    nb::dict fields;
    fields["num_input_pipelines"] = context.num_input_pipelines;
    fields["input_pipeline_id"] = context.input_pipeline_id;
    fields["num_replicas_in_sync"] = context.num_replicas_in_sync;
    fields["replicas_per_worker"] = context.replicas_per_worker;
    fields["global_batch_size"] = context.global_batch_size;
    return fields;
  }

  nb::dict Info() const {
    headrace_info info{};
    info.size = sizeof(info);
    Check(headrace_get_info(handle_.get(), &info));
    nb::list warnings;
    for (int32_t i = 0; i < info.num_warnings; ++i) warnings.append(info.warnings[i]);
    nb::dict fields;
    fields["input"] = info.input;
    fields["plan_hash"] = info.plan_hash;
    fields["effective_policy"] = info.effective_policy;
    fields["cardinality"] = info.cardinality;
    fields["warnings"] = warnings;
    fields["memory"] = info.memory;
    fields["memory_reason"] = info.memory_reason;
    fields["element_spec"] = headrace_element_spec_string(handle_.get());
    return fields;
  }

 private:
  explicit Dataset(headrace_dataset* handle) : handle_(handle, headrace_dataset_free) {}

  std::shared_ptr<headrace_dataset> handle_;
};

}  // namespace

NB_MODULE(_native, module) {
  // A batch in a module's global is freed by the interpreter's end or not at all; both are fine.
  nb::set_leak_warnings(false);

  nb::class_<Buffer>(module, "Buffer")
      .def_prop_ro("name", [](const Buffer& buffer) { return buffer.tensor.name; })
      .def_prop_ro("dtype", [](const Buffer& buffer) { return buffer.tensor.dtype.name; })
      .def_prop_ro("shape", [](const Buffer& buffer) { return ToTuple(buffer.shape(), buffer.tensor.ndim); })
      .def_prop_ro("nbytes", [](const Buffer& buffer) { return buffer.tensor.nbytes; })
      .def_prop_ro("is_variable", [](const Buffer& buffer) { return buffer.tensor.row_splits != nullptr; })
      .def_prop_ro("on_device", &Buffer::on_device)
      .def("memory", [](const Buffer& buffer) { return Memory{buffer}; })
      .def("values", &Buffer::Values)
      .def("row_splits", &Buffer::RowSplits)
      .def("rows", &Buffer::Rows, "begin"_a, "end"_a)
      .def_prop_ro(
          "device",
          [](const Buffer& buffer) { return nb::make_tuple(buffer.tensor.device_type, buffer.tensor.device_id); })
      .def("copy_to", &Buffer::CopyTo, "address"_a)
      .def("dlpack", &Buffer::Capsule, "as_bytes"_a = false, "stream"_a = kNoStream);

  const nb::class_<Memory> memory(module, "Memory", nb::type_slots(memory_slots));

  nb::class_<Batch>(module, "Batch")
      .def_prop_ro("replica", [](const Batch& batch) { return headrace_batch_replica(batch.handle.get()); })
      .def_prop_ro("rows", [](const Batch& batch) { return headrace_batch_rows(batch.handle.get()); })
      .def_prop_ro("epoch", [](const Batch& batch) { return headrace_batch_epoch(batch.handle.get()); })
      .def_prop_ro("step", [](const Batch& batch) { return headrace_batch_step(batch.handle.get()); })
      .def("buffer", &Batch::At, "index"_a);

  nb::class_<NumpyArrays>(module, "NumpyArrays")
      .def(nb::init<nb::object, nb::object>(), "api"_a, "ndarray"_a)
      .def("view", &NumpyArrays::View, "buffer"_a, "dtype"_a);

  nb::class_<Iterator>(module, "Iterator")
      .def("next", &Iterator::Next, "as_optional"_a, "timeout_ms"_a)
      .def("position", &Iterator::At);

  nb::class_<NumpyIterator>(module, "NumpyIterator", nb::type_slots(numpy_iterator_slots))
      .def(nb::init<Iterator, nb::tuple, nb::tuple, NumpyArrays, nb::object>(), "iterator"_a, "names"_a, "dtypes"_a,
           "numpy"_a, "convert"_a);

  nb::class_<Dataset>(module, "Dataset")
      .def_static("connect", &Dataset::Connect, "directory"_a.none(), "timeout_ms"_a, "takes_device"_a, "gpus"_a,
                  "device_batches"_a)
      .def("iterate", &Dataset::Iterate, "replica"_a, "start"_a.none())
      .def("components", &Dataset::Components)
      .def("input_context", &Dataset::InputContext)
      .def("info", &Dataset::Info);

  module.def("version", &headrace_version);
  module.def("per_replica_batch_size", [](int64_t replicas, int64_t global_batch_size) {
    headrace_input_context context{};
    context.num_replicas_in_sync = replicas;
    int64_t batch_size = 0;
    Check(headrace_context_per_replica_batch_size(&context, global_batch_size, &batch_size));
    return batch_size;
  });
  module.def("serve", &Serve, "directory"_a.none(), "timeout_ms"_a, "start"_a, "next"_a);
}

}  // namespace headrace::python
