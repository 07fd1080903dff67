#include "common/ring/function_wire.h"

#include "common/ring/layout.h"
#include "common/ring/message.h"

namespace headrace::ring {
namespace {

using nlohmann::json;

constexpr int64_t kMaxElementBytes = int64_t{1} << 40;

json Message(const char* kind, json body) { return {{"version", kProtocolVersion}, {kind, std::move(body)}}; }

struct RequestBody {
  json operator()(const StartEpoch& start) const {
    return Message("start", {{"epoch", start.epoch},
                             {"numWorkers", start.topology.num_workers},
                             {"workerIndex", start.topology.worker_index},
                             {"replicasPerWorker", start.topology.replicas_per_worker}});
  }
  json operator()(const NextElement&) const { return Message("next", json::object()); }
  json operator()(const MapRing& ring) const { return Message("ring", {{"replica", ring.replica}}); }
  json operator()(const WriteElement& write) const {
    return Message("write", {{"replica", write.replica}, {"offsets", write.offsets}});
  }
};

struct AnswerBody {
  json operator()(const EpochStarted& started) const {
    json body = {{"cardinality", started.cardinality}};
    if (!started.element_spec.empty()) body["elementSpec"] = ToJson(started.element_spec);
    return Message("started", std::move(body));
  }
  json operator()(const Element& element) const { return Message("element", ToJson(element.tensors)); }
  json operator()(const EndOfElements&) const { return Message("end", json::object()); }
  json operator()(const ElementWritten&) const { return Message("written", json::object()); }
};

Result<FunctionRequest> DecodeStart(const json& body) {
  Fields fields(body);
  StartEpoch start;
  start.epoch = static_cast<uint64_t>(fields.Integer("epoch", 0));
  start.topology.num_workers = fields.Integer("numWorkers", 1);
  start.topology.worker_index = fields.Integer("workerIndex", 0);
  start.topology.replicas_per_worker = fields.Integer("replicasPerWorker", 1);
  RETURN_IF_ERROR(fields.status());
  return FunctionRequest(start);
}

Result<FunctionRequest> DecodeWrite(const json& body) {
  Fields fields(body);
  WriteElement write;
  write.replica = fields.Integer("replica", 0);
  const json* const offsets = fields.Find("offsets", &json::is_array, "an array");
  RETURN_IF_ERROR(fields.status());
  for (const json& offset : *offsets) {
    if (!offset.is_number_unsigned()) return Internal("function: an offset is " + offset.dump());
    write.offsets.push_back(offset.get<uint64_t>());
  }
  return FunctionRequest(std::move(write));
}

// The types of a function's components, from another process: what comes of them is used to lay out memory.
Result<std::vector<TensorSpec>> DecodeTensors(const json& list, int64_t least_dim) {
  ASSIGN_OR_RETURN(auto tensors, ParseElementSpec(list));
  if (tensors.empty() || tensors.size() > static_cast<size_t>(kMaxComponents)) {
    return InvalidArgument("it has " + std::to_string(tensors.size()) + " components; 1 to " +
                           std::to_string(kMaxComponents) + " can be delivered");
  }
  for (const TensorSpec& tensor : tensors) {
    const std::string what = "component \"" + tensor.name + "\" is " + tensor.ToString();
    if (tensor.dtype == DType::kString || tensor.ragged) {
      return InvalidArgument(what + ": a function yields tensors of numbers, whose rows have one length");
    }
    if (tensor.shape.size() > static_cast<size_t>(kMaxDims)) {
      return InvalidArgument(what + ": at most " + std::to_string(kMaxDims) + " dimensions are offered");
    }
    auto bytes = static_cast<int64_t>(DTypeSize(tensor.dtype));
    for (const int64_t dim : tensor.shape) {
      if (dim < least_dim) return InvalidArgument(what + ": a dimension is negative");
      if (dim > 0 && (__builtin_mul_overflow(bytes, dim, &bytes) || bytes > kMaxElementBytes)) {
        return InvalidArgument(what + ": more than 1 TiB");
      }
    }
  }
  return tensors;
}

Result<FunctionAnswer> DecodeStarted(const json& body) {
  Fields fields(body);
  EpochStarted started;
  started.cardinality = fields.Integer("cardinality", kUnknownCardinality);
  RETURN_IF_ERROR(fields.status());
  if (body.contains("elementSpec")) {
    ASSIGN_OR_RETURN(started.element_spec, DecodeTensors(body["elementSpec"], kUnknownDim));
  }
  return FunctionAnswer(std::move(started));
}

}  // namespace

std::string Encode(const FunctionRequest& request) { return DumpMessage(std::visit(RequestBody{}, request)); }
std::string Encode(const FunctionAnswer& answer) { return DumpMessage(std::visit(AnswerBody{}, answer)); }

Result<FunctionRequest> DecodeFunctionRequest(const std::string& text) {
  ASSIGN_OR_RETURN(const json message, ParseMessage(text));
  RETURN_IF_ERROR(ErrorOf(message));
  const auto body = [&](const char* kind) {
    const auto found = message.find(kind);
    return found != message.end() && found->is_object() ? &*found : nullptr;
  };
  if (const json* const start = body("start")) return DecodeStart(*start);
  if (body("next") != nullptr) return FunctionRequest(NextElement{});
  if (const json* const write = body("write")) return DecodeWrite(*write);
  if (const json* const ring = body("ring")) {
    Fields fields(*ring);
    const MapRing map{fields.Integer("replica", 0)};
    RETURN_IF_ERROR(fields.status());
    return FunctionRequest(map);
  }
  return Internal("function: not a request: " + text.substr(0, 200));
}

Result<FunctionAnswer> DecodeFunctionAnswer(const std::string& text) {
  ASSIGN_OR_RETURN(const json message, ParseMessage(text));
  RETURN_IF_ERROR(ErrorOf(message));
  if (message.contains("element")) {
    ASSIGN_OR_RETURN(auto tensors, DecodeTensors(message["element"], 0));
    return FunctionAnswer(Element{std::move(tensors)});
  }
  if (message.contains("end")) return FunctionAnswer(EndOfElements{});
  if (message.contains("written")) return FunctionAnswer(ElementWritten{});
  if (message.contains("started") && message["started"].is_object()) return DecodeStarted(message["started"]);
  return Internal("function: not an answer: " + text.substr(0, 200));
}

}  // namespace headrace::ring
