#include "sidecar/remote/small_request.h"

#include "sidecar/remote/url.h"

namespace headrace::side {
namespace {

class SmallCall : public Call {
 public:
  explicit SmallCall(const Request& request) : Call(SplitUrl(request.url).origin()), request_(request) {}
  Request Prepare() override { return request_; }
  std::optional<std::span<uint8_t>> Body(const Reply&) override { return std::span<uint8_t>(); }
  Fate Judge(Reply& reply) override { return FateOf(reply); }

 private:
  const Request& request_;
};

}  // namespace

Reply SendSmall(Transfers* transfers, const Request& request) {
  SmallCall call(request);
  transfers->Start(call);
  transfers->Await(call);
  return call.reply();
}

std::string WhyFailed(const Reply& reply) {
  if (reply.status == 0) return reply.error;
  const std::string line = reply.text.substr(0, std::min<size_t>(reply.text.find_first_of("\r\n"), 200));
  return "status " + std::to_string(reply.status) + (line.empty() ? "" : ": " + line);
}

}  // namespace headrace::side
