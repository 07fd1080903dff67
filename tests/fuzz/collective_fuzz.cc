// Any bytes as what another loader sends: messages or an error; what was read is written and read back as it was.
#include <cstdlib>

#include "sidecar/collective/wire.h"
#include "tests/fuzz/target.h"

using namespace headrace;
using namespace headrace::side::wire;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  for (;;) {
    const size_t before = rest.size();
    const auto message = Decode(&rest);
    if (!message.ok()) {
      if (message.status().message().empty()) std::abort();  // an error that says nothing
      return 0;
    }
    if (!message->has_value()) return 0;
    if (rest.size() >= before) std::abort();  // would never end
    const auto* const hello = std::get_if<Hello>(&**message);
    if (hello != nullptr && hello->version != kVersion) continue;
    const std::string again = Encode(**message);
    std::string_view copy = again;
    const auto same = Decode(&copy);
    if (!same.ok() || *same != *message) std::abort();
  }
}

const int headrace::fuzz::kMutations = 50000;

std::vector<std::string> headrace::fuzz::Seeds() {
  const std::string greeting = Encode(Hello{kVersion, 3, 1, false, "run", "0123456789abcdef", "host"});
  const std::string reports = Encode(Final{3, 10}) + Encode(Report{4, 2, true, false, 5}) + Encode(Failure{"x: y"});
  const std::string news = Encode(Welcome{"host"}) + Encode(News{true, false, 5, 3, kNever, ""}) +
                           Encode(Known{4, 2, true}) + Encode(Refusal{"no"});
  return {greeting, reports, news};
}
