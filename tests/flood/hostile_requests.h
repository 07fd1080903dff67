// What a hostile peer sends to the admission endpoint, request by request, by a seed: broken HTTP, broken chunks, JSON
// of wrong types, cut, deep or wide, and silence. Some are well formed, for what lies behind the parser.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

namespace headrace::flood {

struct HostileRequest {
  enum class Then {
    kAwaitAnswer,
    kEnd,     // say that no more will come, and read what there is to read
    kLeave,   // close without reading
    kLinger,  // keep the connection open and say nothing more
  };
  std::string bytes;
  // Sent so many times, one after another, or until the server has had enough.
  uint64_t times = 1;
  Then then = Then::kAwaitAnswer;  // only after requests that are whole
  bool before_tls = false;         // sent in place of a TLS handshake
};

class HostileRequests {
 public:
  // `good` are reviews that the server answers with a patch.
  HostileRequests(uint64_t seed, std::vector<nlohmann::json> good);
  HostileRequest Next();

 private:
  uint64_t Below(uint64_t bound) { return random_() % bound; }
  // From 1 to `most`, small ones as likely as large ones.
  uint64_t Size(uint64_t most);
  std::string Garbage(uint64_t most);
  std::string Path();
  std::string Post(const std::string& body);
  nlohmann::json OddValue();
  nlohmann::json OddReview();
  std::string MutatedReview();
  std::string DeepReview();
  std::string WideReview();
  std::string BadChunks();
  std::string BadHead();

  std::mt19937_64 random_;
  const std::vector<nlohmann::json> good_;
};

}  // namespace headrace::flood
