// Google Cloud Storage, by its XML interface: S3's listing, with HMAC keys signed as S3 does it, or with a token.
#include "sidecar/remote/service.h"
#include "sidecar/remote/url.h"

namespace headrace::side {
namespace {

class Gs : public Service {
 public:
  explicit Gs(ServiceContext* context)
      : endpoint_(context->options.endpoint.empty() ? "https://storage.googleapis.com" : context->options.endpoint),
        region_(context->options.region.empty() ? "auto" : context->options.region),
        credentials_(GoogleCredentials(context->environment, &context->transfers)) {}

  std::string UrlOf(const std::string& path) const override {
    const ObjectName name = SplitObjectPath(path);
    return BucketUrl(name.bucket) + "/" + PercentEncode(name.key, /*keep_slashes=*/true);
  }
  std::string BucketUrl(const std::string& bucket) const override { return endpoint_ + "/" + PercentEncode(bucket); }
  Status Prepare() override { return credentials_.Renew(); }
  std::shared_ptr<const Credentials> Authorize(Request* request) const override {
    // Objects stored with Content-Encoding: gzip come as they lie; without this they would come inflated, and ranges of
    // them would not work.
    request->headers.push_back("Accept-Encoding: gzip");
    auto credentials = credentials_.current();
    if (credentials != nullptr && credentials->aws)
      SignV4(*credentials->aws, region_, "s3", std::time(nullptr), request);
    if (credentials != nullptr && !credentials->bearer.empty()) {
      request->headers.push_back("Authorization: Bearer " + credentials->bearer);
    }
    return credentials;
  }
  Status Replace(const std::shared_ptr<const Credentials>& used) override { return credentials_.Replace(used); }
  std::string Place() const override { return endpoint_; }

 private:
  const std::string endpoint_;
  const std::string region_;
  CredentialCache credentials_;
};

}  // namespace

std::unique_ptr<Service> MakeGs(ServiceContext* context) { return std::make_unique<Gs>(context); }

}  // namespace headrace::side
