// The struct behind numpy's __array_struct__ ("The array interface protocol" in its documentation), as it fixes it.
#pragma once

#include <cstdint>

namespace headrace::python {

struct PyArrayInterface {
  int two;  // is 2
  int nd;
  char typekind;  // 'i', 'f', ...
  int itemsize;   // bytes
  int flags;
  int64_t* shape;
  int64_t* strides;  // bytes
  void* data;
  void* descr;  // a PyObject, where a flag says so; null
};

inline constexpr int kArrayAligned = 0x100;
inline constexpr int kArrayNotSwapped = 0x200;
inline constexpr int kArrayWriteable = 0x400;

}  // namespace headrace::python
