// Numpy arrays over memory of a batch.
//
// By numpy's C API, whose table of functions is that of the numpy which is there when it runs: the places in it never
// change (numpy_api.py in its sources; pybind11 goes the same way). So none is needed to build.
#pragma once

#include <Python.h>

#include <cstdint>

namespace headrace::python {

class NumpyApi {
 public:
  // `api`: numpy's capsule _ARRAY_API. `ndarray`: its class. Both are borrowed, for as long as arrays are made. Not
  // ok(), with Python's error set, if the capsule is none.
  NumpyApi(PyObject* api, PyObject* ndarray)
      : table_(static_cast<void**>(PyCapsule_GetPointer(api, nullptr))), ndarray_(ndarray) {}
  bool ok() const { return table_ != nullptr; }

  // A new array of `dtype` (a numpy.dtype; borrowed) over row-major values in host memory, which `owner` (borrowed)
  // keeps. Null, with Python's error set, if there is no memory for it.
  PyObject* Make(PyObject* dtype, void* data, int ndim, const int64_t* shape, bool readonly, PyObject* owner) const {
    static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));
    const auto new_from_descr = reinterpret_cast<NewFromDescr*>(table_[kNewFromDescr]);
    const auto set_base_object = reinterpret_cast<SetBaseObject*>(table_[kSetBaseObject]);
    Py_INCREF(dtype);  // it takes one over
    PyObject* const array = new_from_descr(ndarray_, dtype, ndim, reinterpret_cast<const Py_ssize_t*>(shape), nullptr,
                                           data, kArrayAligned | (readonly ? 0 : kArrayWriteable), nullptr);
    if (array == nullptr) return nullptr;
    Py_INCREF(owner);
    if (set_base_object(array, owner) == 0) return array;
    Py_DECREF(array);
    return nullptr;
  }

 private:
  static constexpr int kArrayAligned = 0x100;  // NPY_ARRAY_ALIGNED, NPY_ARRAY_WRITEABLE
  static constexpr int kArrayWriteable = 0x400;
  static constexpr int kNewFromDescr = 94;  // PyArray_NewFromDescr, PyArray_SetBaseObject
  static constexpr int kSetBaseObject = 282;
  using NewFromDescr = PyObject*(PyObject* subtype, PyObject* descr, int ndim, const Py_ssize_t* dims,
                                 const Py_ssize_t* strides, void* data, int flags, PyObject* object);
  using SetBaseObject = int(PyObject* array, PyObject* base);

  void** table_;
  PyObject* ndarray_;
};

}  // namespace headrace::python
