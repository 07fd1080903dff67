// A real S3 server over a folder: versitygw, as a process of its own, behind a proxy of ours that makes it misbehave.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "tests/fakes/http_faults.h"
#include "tests/sidecar/files.h"

namespace headrace::side {

class S3Server {
 public:
  // The answer to the n-th request, from 0: what the server says to it (`ask` asks), changed, or something else. None:
  // what the server says.
  using Fault = std::function<fakes::Answer(int request, const fakes::SeenRequest& seen,
                                            const std::function<fakes::Answer()>& ask)>;
  explicit S3Server(Fault fault = {});
  ~S3Server();
  S3Server(const S3Server&) = delete;
  S3Server& operator=(const S3Server&) = delete;

  std::string endpoint() const { return proxy_->url(); }
  const fakes::HttpFaults& proxy() const { return *proxy_; }
  // What a client needs to be let in.
  static std::map<std::string, std::string> Keys();
  // The folder whose folders are buckets.
  std::string root() const { return folder_.path() + "/root"; }
  // Puts an object by the server itself, so that it has an ETag. The bucket is made where it lacks.
  void Put(const std::string& bucket, const std::string& key, const std::string& bytes);

 private:
  fakes::Answer Forward(const std::string& raw) const;

  const Folder folder_;
  const Fault fault_;
  std::atomic<int> requests_{0};
  pid_t process_ = -1;
  std::unique_ptr<fakes::HttpFaults> proxy_;
};

}  // namespace headrace::side
