#include "client/python/src/serve.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <vector>

#include "client/python/src/errors.h"
#include "headrace/client.h"

namespace headrace::python {
namespace {

namespace nb = nanobind;

// What the callbacks share. Used with the GIL held, but for its construction.
struct Function {
  nb::callable start;
  nb::callable next;
  // Of the epoch's declared components, and of the last element: what the C structs point to.
  std::vector<std::string> names;
  std::vector<std::string> dtypes;
  std::vector<std::vector<int64_t>> shapes;
  std::vector<headrace_tensor_spec> specs;
  std::vector<headrace_tensor> tensors;
  nb::object element;  // keeps the arrays

  void Clear() {
    names.clear();
    dtypes.clear();
    shapes.clear();
  }
  void Add(std::string name, std::string dtype, std::vector<int64_t> shape) {
    names.push_back(std::move(name));
    dtypes.push_back(std::move(dtype));
    shapes.push_back(std::move(shape));
  }
};

// "ValueError: the text (dataset.py:12)".
headrace_status Raised(nb::python_error& error) {
  std::string text =
      nb::cast<std::string>(error.type().attr("__name__")) + ": " + nb::cast<std::string>(nb::str(error.value()));
  // The innermost line that is the user's own.
  std::string where;
  for (nb::object at = error.traceback(); at.is_valid() && !at.is_none(); at = at.attr("tb_next")) {
    const auto module = at.attr("tb_frame").attr("f_globals").attr("get")("__name__", "");
    if (nb::cast<std::string>(nb::str(module)).starts_with("headrace.")) continue;
    const auto file = nb::cast<std::string>(at.attr("tb_frame").attr("f_code").attr("co_filename"));
    where =
        " (" + file.substr(file.rfind('/') + 1) + ":" + std::to_string(nb::cast<int64_t>(at.attr("tb_lineno"))) + ")";
  }
  text += where;
  const bool interrupted = error.matches(PyExc_KeyboardInterrupt) || error.matches(PyExc_SystemExit);
  if (!interrupted) {  // the program's own log gets the whole traceback
    error.restore();
    PyErr_Print();
  }
  headrace_set_error(text.c_str());
  return interrupted ? HEADRACE_CANCELLED : HEADRACE_INVALID_ARGUMENT;
}

template <typename Body>
headrace_status Call(Body body) {
  nb::gil_scoped_acquire acquired;
  try {
    return body();
  } catch (nb::python_error& error) {
    return Raised(error);
  } catch (const std::exception& error) {
    headrace_set_error(error.what());
    return HEADRACE_INTERNAL;
  }
}

headrace_status Start(void* user, const headrace_input_context* context, int64_t number, headrace_epoch* epoch) {
  return Call([&] {
    auto& function = *static_cast<Function*>(user);
    const nb::object declared = function.start(number, context->num_input_pipelines, context->input_pipeline_id,
                                               context->num_replicas_in_sync, context->replicas_per_worker);
    epoch->cardinality = nb::cast<int64_t>(declared[1]);
    function.Clear();
    for (const nb::handle component : nb::cast<nb::sequence>(declared[0])) {
      function.Add(nb::cast<std::string>(component[0]), nb::cast<std::string>(component[1]),
                   nb::cast<std::vector<int64_t>>(component[2]));
    }
    function.specs.clear();
    for (size_t c = 0; c < function.names.size(); ++c) {
      function.specs.push_back({sizeof(headrace_tensor_spec),
                                function.names[c].c_str(),
                                {function.dtypes[c].c_str(), 0, 0, 1},
                                static_cast<int32_t>(function.shapes[c].size()),
                                function.shapes[c].data(),
                                0});
    }
    epoch->num_components = static_cast<int32_t>(function.specs.size());
    epoch->element_spec = function.specs.data();
    return HEADRACE_OK;
  });
}

headrace_status Next(void* user, void*, headrace_element* out) {
  return Call([&] {
    auto& function = *static_cast<Function*>(user);
    nb::object element = function.next();
    if (element.is_none()) return HEADRACE_END;
    function.element = std::move(element);
    function.Clear();
    std::vector<void*> data;
    for (const nb::handle component : nb::cast<nb::sequence>(function.element)) {
      function.Add(nb::cast<std::string>(component[0]), nb::cast<std::string>(component[1]),
                   nb::cast<std::vector<int64_t>>(component[2].attr("shape")));
      data.push_back(reinterpret_cast<void*>(nb::cast<uintptr_t>(component[2].attr("__array_interface__")["data"][0])));
    }
    function.tensors.assign(data.size(), {});
    for (size_t c = 0; c < data.size(); ++c) {
      headrace_tensor& tensor = function.tensors[c];
      tensor.size = sizeof(tensor);
      tensor.name = function.names[c].c_str();
      tensor.dtype.name = function.dtypes[c].c_str();
      tensor.data = data[c];
      tensor.ndim = static_cast<int32_t>(function.shapes[c].size());
      tensor.shape = function.shapes[c].data();
    }
    out->num_tensors = static_cast<int32_t>(function.tensors.size());
    out->tensors = function.tensors.data();
    return HEADRACE_OK;
  });
}

}  // namespace

int LookAtSignals(void*) {
  nb::gil_scoped_acquire acquired;
  return PyErr_CheckSignals() != 0 ? 1 : 0;
}

void Serve(const std::optional<std::string>& directory, int64_t timeout_ms, nb::callable start, nb::callable next) {
  Function function{std::move(start), std::move(next), {}, {}, {}, {}, {}, {}};
  headrace_dataset_function callbacks{};
  callbacks.size = sizeof(callbacks);
  callbacks.user = &function;
  callbacks.start = Start;
  callbacks.next = Next;
  headrace_connect_options options{};
  options.size = sizeof(options);
  options.directory = directory ? directory->c_str() : nullptr;
  options.timeout_ms = timeout_ms;
  options.interrupted = LookAtSignals;
  headrace_status status;
  {
    nb::gil_scoped_release released;
    status = headrace_serve(&options, &callbacks);
  }
  Check(status);
}

}  // namespace headrace::python
