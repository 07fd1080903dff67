#include "client/python/src/errors.h"

#include <nanobind/nanobind.h>

namespace headrace::python {

namespace nb = nanobind;

void Check(headrace_status status) {
  if (status == HEADRACE_OK) return;
  // An interrupted connect has its exception already (KeyboardInterrupt, as a rule).
  if (status == HEADRACE_CANCELLED && PyErr_Occurred() != nullptr) throw nb::python_error();
  const char* name = headrace_status_name(status);
  nb::object exception = nb::module_::import_("headrace.errors").attr("from_status")(name, headrace_last_error());
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  throw nb::python_error();
}

}  // namespace headrace::python
