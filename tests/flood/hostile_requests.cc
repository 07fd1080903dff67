#include "tests/flood/hostile_requests.h"

namespace headrace::flood {
namespace {

using nlohmann::json;

constexpr uint64_t kMebibyte = 1 << 20;

std::string Repeated(std::string_view piece, uint64_t times) {
  std::string all;
  all.reserve(piece.size() * times);
  for (uint64_t i = 0; i < times; ++i) all += piece;
  return all;
}

// Every value within `value`, itself first.
void Collect(json& value, std::vector<json*>& all) {
  all.push_back(&value);
  if (value.is_structured()) {
    for (json& inner : value) Collect(inner, all);
  }
}

}  // namespace

HostileRequests::HostileRequests(uint64_t seed, std::vector<json> good) : random_(seed), good_(std::move(good)) {}

uint64_t HostileRequests::Size(uint64_t most) {
  uint64_t bound = 1;
  while (bound < most && Below(4) != 0) bound *= 4;
  return 1 + Below(std::min(bound, most));
}

std::string HostileRequests::Garbage(uint64_t most) {
  std::string bytes(Size(most), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random_());
  return bytes;
}

std::string HostileRequests::Path() {
  const char* paths[] = {"/inject-pod", "/inject-pod", "/inject-template", "/inject-pod?timeout=10s", "/", "/metrics"};
  return paths[Below(std::size(paths))];
}

std::string HostileRequests::Post(const std::string& body) {
  return "POST " + Path() +
         " HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

json HostileRequests::OddValue() {
  switch (Below(10)) {
    case 0: return nullptr;
    case 1: return Below(2) == 0;
    case 2: return static_cast<int64_t>(random_());
    case 3: return 1e308;
    case 4: return json::array();
    case 5: return json::object();
    case 6: return std::string(Size(4096), 'x');
    case 7: return json::array({1, nullptr, json::object()});
    case 8: return {{"name", 1}, {"", ""}};
    default: return "headrace-loader";
  }
}

// Of the right shape, but for some values.
json HostileRequests::OddReview() {
  json review = good_[Below(good_.size())];
  for (uint64_t changes = 1 + Below(4); changes > 0; --changes) {
    std::vector<json*> values;
    Collect(review, values);
    json& value = *values[Below(values.size())];
    if (value.is_object() && !value.empty() && Below(2) == 0) {
      value.erase(std::next(value.begin(), static_cast<int64_t>(Below(value.size()))));
    } else {
      value = OddValue();
    }
  }
  return review;
}

std::string HostileRequests::MutatedReview() {
  std::string text = good_[Below(good_.size())].dump();
  for (uint64_t changes = Below(6); changes > 0 && !text.empty(); --changes) {
    const size_t at = Below(text.size());
    switch (Below(4)) {
      case 0: text[at] = static_cast<char>(random_()); break;
      case 1: text.resize(at); break;
      case 2: text.insert(at, text.substr(Below(text.size()), Below(200))); break;
      default: text.erase(at, Below(200)); break;
    }
  }
  return text;
}

// A value of any depth where a review has one.
std::string HostileRequests::DeepReview() {
  const bool objects = Below(2) == 0;
  const uint64_t depth = Size(kMebibyte / 2);
  const std::string deep =
      Repeated(objects ? "{\"a\":" : "[", depth) + "1" + (Below(4) == 0 ? "" : Repeated(objects ? "}" : "]", depth));
  json review = good_[Below(good_.size())];
  std::vector<json*> values;
  Collect(review, values);
  *values[Below(values.size())] = "HERE";
  std::string text = review.dump();
  const size_t at = text.find("\"HERE\"");
  return at == std::string::npos ? deep : text.replace(at, 6, deep);
}

std::string HostileRequests::WideReview() {
  const char* pieces[] = {"0,", "[],", "{},", "\"\",", "{\"a\":[]},"};
  const std::string_view piece = pieces[Below(std::size(pieces))];
  const uint64_t bytes = Below(20) == 0 ? 4 * kMebibyte - 1024 : Size(kMebibyte / 16);
  return R"({"apiVersion":"admission.k8s.io/v1","request":{"uid":"u","object":[)" +
         Repeated(piece, bytes / piece.size()) + "0]}}";
}

std::string HostileRequests::BadChunks() {
  const char* sizes[] = {"-1",     "-5", "zz", "",         " 5",       "+5", "0x5", "ffffffffffffffff",
                         "5;",     "5 ", "05", "7fffffff", "80000000", "3",  "5\n", "00000000000000000000000000000005",
                         "5;x=\"", "3e8"};
  std::string size = sizes[Below(std::size(sizes))];
  if (Below(10) == 0) size += ";" + std::string(Size(100000), 'x');
  return "POST " + Path() + " HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + size + "\r\nabcde\r\n" +
         (Below(2) == 0 ? "0\r\n\r\n" : "0\r\nTrailer: x\r\n\r\n");
}

std::string HostileRequests::BadHead() {
  const std::string start = "POST " + Path() + " HTTP/1.1\r\nHost: a\r\n";
  switch (Below(14)) {
    case 0: return Garbage(4096);
    case 1: return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    case 2: return start + "Content-Length: -1\r\n\r\n";
    case 3: return start + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef";
    case 4: return start + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n";
    case 5: return start + "Content-Length: 99999999999999999999\r\n\r\n";
    case 6: return start + std::string(Size(100000), 'x') + ": y\r\n\r\n";
    case 7: return start + Repeated("A: b\r\n", Size(20000)) + "\r\n";
    case 8: return start + "No colon\r\n\r\n";
    case 9: return "GET /" + std::string(Size(100000), 'a') + " HTTP/1.1\r\n\r\n";
    case 10: return "GET / HTTP/" + std::to_string(Below(100)) + "." + std::to_string(Below(100)) + "\r\n\r\n";
    case 11: return start + " folded: yes\r\n\r\n";
    case 12: return start + "Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc";
    default: return Repeated("\r\n", Size(100000));
  }
}

HostileRequest HostileRequests::Next() {
  using Then = HostileRequest::Then;
  const uint64_t kind = Below(1000);
  if (kind < 300) return {Post(OddReview().dump())};
  if (kind < 500) return {Post(MutatedReview())};
  if (kind < 560) return {Post(DeepReview())};
  if (kind < 570) return {Post(WideReview())};
  if (kind < 700) return {BadChunks(), 1, Then::kEnd};
  if (kind < 850) return {BadHead(), 1, Then::kEnd};
  // Without waiting for the answers.
  if (kind < 870) return {Post(OddReview().dump()) + Post(MutatedReview()) + BadHead(), 1, Then::kEnd};
  if (kind == 870 && Below(20) == 0) {
    return {"POST / HTTP/1.1\r\nX: " + std::string(kMebibyte, 'x'), 64, Then::kEnd};
  }
  if (kind < 900) return {Garbage(4096), 1, Then::kEnd, true};
  std::string begun = kind < 950 ? Post(OddReview().dump()) : BadHead();
  begun.resize(Below(begun.size()));
  if (kind < 960) return {begun, 1, Then::kLeave};
  if (kind < 970) return {begun, 1, Then::kLeave, true};
  return {begun, 1, Then::kLinger, kind < 980};
}

}  // namespace headrace::flood
