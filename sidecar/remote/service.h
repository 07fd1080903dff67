// A kind of object store: where its objects are, how a request is made acceptable to it, and what its refusals mean.
// One file a kind: s3.cc, gs.cc, http.cc; the table is in service.cc.
#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/spec/input_spec.h"
#include "sidecar/remote/credentials.h"
#include "sidecar/remote/transfers.h"

namespace headrace::side {

// What every service stands on; outlives it.
struct ServiceContext {
  const ObjectStoreOptions options;  // spec.source.files.objectStore
  const Environment environment;
  Transfers transfers;
};

// Any thread.
class Service {
 public:
  virtual ~Service() = default;

  // Paths are whole, as in spec.source.files.paths.
  virtual std::string UrlOf(const std::string& path) const = 0;
  // Of a bucket, where its objects are listed; "" where they cannot be.
  virtual std::string BucketUrl(const std::string& bucket) const = 0;
  // Makes Authorize work for the next minutes; blocks.
  virtual Status Prepare() = 0;
  // Adds what shows who asks, and returns the credentials used. Does not block.
  virtual std::shared_ptr<const Credentials> Authorize(Request* request) const = 0;
  // After `used` was refused as expired; blocks.
  virtual Status Replace(const std::shared_ptr<const Credentials>& used) = 0;
  // For messages: "https://minio.example:9000, region us-east-1"
  virtual std::string Place() const = 0;
};

// By the path's scheme. REQUIRES: RemotePathError has nothing against a path of that scheme.
std::unique_ptr<Service> MakeService(const std::string& scheme, ServiceContext* context);

std::unique_ptr<Service> MakeS3(ServiceContext* context);
std::unique_ptr<Service> MakeGs(ServiceContext* context);
std::unique_ptr<Service> MakeHttp(ServiceContext* context);

// Whether the reply says that the credentials have expired: new ones may do.
bool SaysExpired(const Reply& reply);

// The error of a read at `where`, a path and perhaps an offset, that ended in `reply`, with its remedy. `used` may be
// null.
Status Refusal(const Service& service, const std::string& where, const Reply& reply, const Credentials* used);

}  // namespace headrace::side
