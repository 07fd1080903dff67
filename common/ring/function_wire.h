// What a loader and the process of the user's dataset function say to each other on the Unix socket
// ($HEADRACE_DIR/function.sock, SOCK_SEQPACKET) which the loader listens on.
//
//   loader -> function                                            function -> loader
//   {"version":1,"start":{"epoch":0,"numWorkers":2,..}} {"version":1,"started":{"elementSpec":[..],"cardinality":-2}}
//   {"version":1,"next":{}}                                       {"version":1,"element":[{"name","dtype","shape"},..]}
//                                                                 {"version":1,"end":{}}
//   {"version":1,"ring":{"replica":0}}   with the ring's file descriptor by SCM_RIGHTS; no answer
//   {"version":1,"write":{"replica":0,"offsets":[4096,..]}}       {"version":1,"written":{}}
//
// In place of any answer: {"version":1,"error":"InvalidArgument: ..."}. The function's process copies the element of
// the last "next" to the offsets, from the ring's first byte: straight into the slot that the trainer will read.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "common/base/status.h"
#include "common/spec/plan.h"

namespace headrace::ring {

struct StartEpoch {
  Topology topology;
  uint64_t epoch = 0;
};
struct NextElement {};
struct MapRing {
  int64_t replica = 0;
};
struct WriteElement {
  int64_t replica = 0;
  std::vector<uint64_t> offsets;  // one for each component
};
using FunctionRequest = std::variant<StartEpoch, NextElement, MapRing, WriteElement>;

struct EpochStarted {
  std::vector<TensorSpec> element_spec;       // none: it is that of the first element
  int64_t cardinality = kUnknownCardinality;  // in elements of this worker
};
struct Element {
  std::vector<TensorSpec> tensors;  // all dimensions known
};
struct EndOfElements {};
struct ElementWritten {};
using FunctionAnswer = std::variant<EpochStarted, Element, EndOfElements, ElementWritten>;

std::string Encode(const FunctionRequest& request);
Result<FunctionRequest> DecodeFunctionRequest(const std::string& text);
std::string Encode(const FunctionAnswer& answer);
// An {"error"} becomes that status. Errors: Internal if `text` is no answer; InvalidArgument if it tells of tensors
// that no ring can hold.
Result<FunctionAnswer> DecodeFunctionAnswer(const std::string& text);

}  // namespace headrace::ring
