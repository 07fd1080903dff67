#include "cli/case_function.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "client/include/headrace/client.h"

namespace headrace::cli {
namespace {

using nlohmann::json;

using Element = std::vector<json>;  // one nested list of numbers for each component
using Next = std::function<std::optional<Element>()>;
using Make = std::function<Next()>;  // starts a pass

// A data set, and what tf.data knows of its elements.
struct Dataset {
  Make make;
  std::vector<std::string> dtypes;           // of each component
  std::vector<std::vector<int64_t>> shapes;  // of each component; -1: unknown
  int64_t cardinality = -2;                  // -1: endless, -2: unknown
};

Make FromList(std::vector<Element> elements) {
  return [list = std::make_shared<const std::vector<Element>>(std::move(elements))] {
    return [list, i = size_t{0}]() mutable { return i < list->size() ? std::optional((*list)[i++]) : std::nullopt; };
  };
}

Make Repeat(Make make, int64_t count) {
  return [=] {
    return [=, pass = Next(), done = int64_t{0}]() mutable -> std::optional<Element> {
      while (true) {
        if (!pass) {
          if (done == count) return {};
          pass = make();
          ++done;
          std::optional<Element> first = pass();
          if (first) return first;
          return {};  // a repeat of nothing ends
        }
        if (auto element = pass()) return element;
        pass = nullptr;
      }
    };
  };
}

Make Batch(Make make, int64_t size, bool drop_remainder) {
  return [=] {
    return [=, pass = make()]() mutable -> std::optional<Element> {
      Element batch;
      int64_t rows = 0;
      for (std::optional<Element> element; rows < size && (element = pass()); ++rows) {
        batch.resize(element->size(), json::array());
        for (size_t c = 0; c < batch.size(); ++c) batch[c].push_back((*element)[c]);
      }
      if (rows == 0 || (rows < size && drop_remainder)) return {};
      return batch;
    };
  };
}

// Elements first, first + every, ..., `most` of them at the most (-1: all).
Make Every(Make make, int64_t every, int64_t first, int64_t most) {
  return [=] {
    return [=, pass = make(), at = int64_t{0}, given = int64_t{0}]() mutable -> std::optional<Element> {
      if (most >= 0 && given == most) return {};
      while (auto element = pass()) {
        const int64_t here = at++;
        if (here < first || (here - first) % every != 0) continue;
        ++given;
        return element;
      }
      return {};
    };
  };
}

Make Enumerate(Make make) {
  return [=] {
    return [pass = make(), index = int64_t{0}]() mutable -> std::optional<Element> {
      auto element = pass();
      if (element) element->insert(element->begin(), index++);
      return element;
    };
  };
}

// The records of `files`, whose elements are lists of numbers: cycle_length files in turn, block_length records each.
Make Interleave(Make files, size_t cycle_length, int64_t block_length) {
  return [=] {
    struct Slot {
      std::deque<json> records;
      bool open = false;
    };
    return [=, list = files(), slots = std::vector<Slot>(cycle_length), at = size_t{0}, left = block_length,
            no_more = false]() mutable -> std::optional<Element> {
      for (size_t passed_over = 0; passed_over < slots.size();) {
        Slot& slot = slots[at];
        if (!slot.open && !no_more) {
          if (const auto file = list()) {
            slot.records.assign((*file)[0].begin(), (*file)[0].end());
            slot.open = true;
          } else {
            no_more = true;
          }
        }
        if (slot.open && !slot.records.empty()) {
          Element record = {slot.records.front()};
          slot.records.pop_front();
          if (--left == 0) {
            at = (at + 1) % slots.size();
            left = block_length;
          }
          return record;
        }
        passed_over = slot.open ? 0 : passed_over + 1;
        slot.open = false;
        at = (at + 1) % slots.size();
        left = block_length;
      }
      return {};
    };
  };
}

std::vector<int64_t> ShapeOf(const json& value) {
  std::vector<int64_t> shape;
  for (const json* level = &value; level->is_array(); level = &level->front()) {
    shape.push_back(static_cast<int64_t>(level->size()));
  }
  return shape;
}

class Interpreter {
 public:
  Interpreter(const json& conformance_case, const headrace_input_context& context)
      : case_(conformance_case), context_(context) {}

  Result<Dataset> Run() {
    Dataset dataset = Source();
    bool first = true;
    for (const json& step : case_.at("transforms")) {
      if (!(first && step.at("op") == "interleave")) RETURN_IF_ERROR(Apply(step, &dataset));
      first = false;
    }
    return dataset;
  }

 private:
  Dataset Source() {
    const json& source = case_.at("source");
    const std::string kind = source.at("kind");
    if (kind == "range") {
      std::vector<Element> numbers;
      for (int64_t i = 0; i < source.at("count"); ++i) numbers.push_back({i});
      const auto count = static_cast<int64_t>(numbers.size());
      return {FromList(std::move(numbers)), {"int64"}, {{}}, count};
    }
    if (kind == "constant") {
      Dataset constant{FromList({source.at("components").get<Element>()}), {}, {}, 1};
      for (const json& component : source.at("components")) {
        constant.dtypes.push_back("float32");
        constant.shapes.push_back(ShapeOf(component));
      }
      return constant;
    }
    if (kind == "generator") {
      const int64_t width = source.at("width");
      const Make vectors = [width] {
        return [width, next = int64_t{0}]() mutable -> std::optional<Element> {
          json vector = json::array();
          for (int64_t i = 0; i < width; ++i) vector.push_back(next++);
          return Element{vector};
        };
      };
      return {vectors, {"float32"}, {{width}}, -1};
    }
    std::vector<Element> files;
    for (const json& file : source.at("files")) files.push_back({file});
    const auto count = static_cast<int64_t>(files.size());
    Dataset list{FromList(std::move(files)), {"int64"}, {{}}, count};
    for (const json& step : case_.value("file_transforms", json::array())) {
      if (const Status status = Apply(step, &list); !status.ok()) break;
    }
    const json& transforms = case_.at("transforms");
    const json interleave = transforms.empty() || transforms[0].at("op") != "interleave" ? json() : transforms[0];
    list.make = interleave.is_null()
                    ? Interleave(list.make, 1, INT64_MAX)
                    : Interleave(list.make, interleave.at("cycle_length"), interleave.at("block_length"));
    list.cardinality = -2;  // how many records the files hold is known only by reading them
    return list;
  }

  Status Apply(const json& step, Dataset* dataset) {
    const std::string op = step.at("op");
    int64_t& n = dataset->cardinality;  // as tf.data has it
    if (op == "repeat") {
      const int64_t count = step.at("count");
      dataset->make = Repeat(dataset->make, count);
      n = n == 0 || count == 0 ? 0 : count < 0 ? -1 : n < 0 ? n : n * count;
    } else if (op == "take") {
      const int64_t count = step.at("count");
      dataset->make = Every(dataset->make, 1, 0, count);
      n = count < 0 ? n : n == -1 ? count : n < 0 ? n : std::min(n, count);
    } else if (op == "skip") {
      const int64_t count = step.at("count");
      dataset->make = count < 0 ? FromList({}) : Every(dataset->make, 1, count, -1);
      n = n < 0 ? n : count < 0 ? 0 : std::max<int64_t>(0, n - count);
    } else if (op == "shard") {
      const auto number = [&](const char* field) {
        const json& value = step.at(field);
        if (value == "num_input_pipelines") return context_.num_input_pipelines;
        return value == "input_pipeline_id" ? context_.input_pipeline_id : value.get<int64_t>();
      };
      const int64_t shards = number("num_shards");
      const int64_t index = number("index");
      dataset->make = Every(dataset->make, shards, index, -1);
      n = n < 0 ? n : n <= index ? 0 : (n - index + shards - 1) / shards;
    } else if (op == "batch") {
      const bool drop = step.value("drop_remainder", false);
      int64_t size = 0;
      if (step.at("size") == "per_replica") {
        const headrace_status status =
            headrace_context_per_replica_batch_size(&context_, case_.at("global_batch"), &size);
        if (status != HEADRACE_OK) return InvalidArgument(headrace_last_error());
      } else {
        size = step.at("size");
      }
      dataset->make = Batch(dataset->make, size, drop);
      n = n < 0 ? n : drop ? n / size : (n + size - 1) / size;
      for (auto& shape : dataset->shapes) shape.insert(shape.begin(), drop ? size : -1);
    } else if (op == "enumerate") {
      dataset->make = Enumerate(dataset->make);
      dataset->dtypes.insert(dataset->dtypes.begin(), "int64");
      dataset->shapes.insert(dataset->shapes.begin(), std::vector<int64_t>());
    } else if (op != "prefetch" && op != "map_identity") {
      return InvalidArgument("transformation " + op + " is unknown");
    }
    return {};
  }

  const json& case_;
  const headrace_input_context context_;
};

// The state between the callbacks; one epoch at a time.
struct Serving {
  const json& conformance_case;
  Dataset dataset;
  Next pass;
  std::vector<std::string> names;
  std::vector<headrace_tensor_spec> specs;
  std::vector<std::vector<uint8_t>> bytes;
  std::vector<std::vector<int64_t>> shapes;
  std::vector<headrace_tensor> tensors;
};

void Append(const json& value, const std::string& dtype, std::vector<uint8_t>* bytes) {
  if (value.is_array()) {
    for (const json& item : value) Append(item, dtype, bytes);
    return;
  }
  const auto append = [&](auto number) {
    bytes->resize(bytes->size() + sizeof number);
    std::memcpy(bytes->data() + bytes->size() - sizeof number, &number, sizeof number);
  };
  dtype == "int64" ? append(value.get<int64_t>()) : append(value.get<float>());
}

headrace_status Failed(const std::string& message) {
  headrace_set_error(message.c_str());
  return HEADRACE_INVALID_ARGUMENT;
}

headrace_status Start(void* user, const headrace_input_context* context, int64_t, headrace_epoch* epoch) try {
  auto& serving = *static_cast<Serving*>(user);
  auto dataset = Interpreter(serving.conformance_case, *context).Run();
  if (!dataset.ok()) return Failed(dataset.status().message());
  serving.dataset = std::move(*dataset);
  serving.pass = serving.dataset.make();
  serving.specs.clear();
  serving.names.clear();
  for (size_t c = 0; c < serving.dataset.shapes.size(); ++c) serving.names.push_back("c" + std::to_string(c));
  for (size_t c = 0; c < serving.dataset.shapes.size(); ++c) {
    const std::vector<int64_t>& shape = serving.dataset.shapes[c];
    serving.specs.push_back({sizeof(headrace_tensor_spec),
                             serving.names[c].c_str(),
                             {serving.dataset.dtypes[c].c_str(), 0, 0, 1},
                             static_cast<int32_t>(shape.size()),
                             shape.data(),
                             0});
  }
  epoch->num_components = static_cast<int32_t>(serving.specs.size());
  epoch->element_spec = serving.specs.data();
  epoch->cardinality = serving.dataset.cardinality;
  return HEADRACE_OK;
} catch (const json::exception& error) {
  return Failed(error.what());
}

headrace_status NextElement(void* user, void*, headrace_element* out) {
  auto& serving = *static_cast<Serving*>(user);
  const std::optional<Element> element = serving.pass();
  if (!element) return HEADRACE_END;
  serving.bytes.assign(element->size(), {});
  serving.shapes.assign(element->size(), {});
  serving.tensors.assign(element->size(), {});
  for (size_t c = 0; c < element->size(); ++c) {
    Append((*element)[c], serving.dataset.dtypes[c], &serving.bytes[c]);
    serving.shapes[c] = ShapeOf((*element)[c]);
    headrace_tensor& tensor = serving.tensors[c];
    tensor.size = sizeof tensor;
    tensor.name = serving.names[c].c_str();
    tensor.dtype.name = serving.dataset.dtypes[c].c_str();
    tensor.data = serving.bytes[c].data();
    tensor.ndim = static_cast<int32_t>(serving.shapes[c].size());
    tensor.shape = serving.shapes[c].data();
  }
  out->num_tensors = static_cast<int32_t>(serving.tensors.size());
  out->tensors = serving.tensors.data();
  return HEADRACE_OK;
}

}  // namespace

Status ServeCaseFunction(const json& conformance_case) {
  Serving serving{conformance_case, {}, {}, {}, {}, {}, {}, {}};
  headrace_dataset_function function = {};
  function.size = sizeof function;
  function.user = &serving;
  function.start = Start;
  function.next = NextElement;
  const headrace_status status = headrace_serve(nullptr, &function);
  return status == HEADRACE_OK ? Status() : Unavailable(headrace_last_error());
}

}  // namespace headrace::cli
