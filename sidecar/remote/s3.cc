// Amazon S3, and what speaks its protocol.
#include "sidecar/remote/service.h"
#include "sidecar/remote/url.h"

namespace headrace::side {
namespace {

class S3 : public Service {
 public:
  explicit S3(ServiceContext* context)
      : region_(RegionOf(*context)),
        endpoint_(EndpointOf(*context)),
        credentials_(AwsCredentials(context->environment, region_, &context->transfers)) {}

  std::string UrlOf(const std::string& path) const override {
    const ObjectName name = SplitObjectPath(path);
    return BucketUrl(name.bucket) + "/" + PercentEncode(name.key, /*keep_slashes=*/true);
  }
  // Amazon wants the bucket in the host's name, whose certificate holds names without further dots; other servers often
  // have one name only.
  std::string BucketUrl(const std::string& bucket) const override {
    if (!endpoint_.empty()) return endpoint_ + "/" + PercentEncode(bucket);
    if (bucket.find('.') != std::string::npos) return "https://" + Host() + "/" + bucket;
    return "https://" + bucket + "." + Host();
  }
  Status Prepare() override { return credentials_.Renew(); }
  std::shared_ptr<const Credentials> Authorize(Request* request) const override {
    auto credentials = credentials_.current();
    if (credentials != nullptr && credentials->aws)
      SignV4(*credentials->aws, region_, "s3", std::time(nullptr), request);
    return credentials;
  }
  Status Replace(const std::shared_ptr<const Credentials>& used) override { return credentials_.Replace(used); }
  std::string Place() const override {
    return (endpoint_.empty() ? "Amazon S3" : endpoint_) + " (region " + region_ + ")";
  }

 private:
  static std::string RegionOf(const ServiceContext& context) {
    if (!context.options.region.empty()) return context.options.region;
    const auto region = context.environment("AWS_REGION");
    return region ? *region : context.environment("AWS_DEFAULT_REGION").value_or("us-east-1");
  }
  static std::string EndpointOf(const ServiceContext& context) {
    std::string endpoint = context.options.endpoint;
    if (endpoint.empty()) {
      const auto of_s3 = context.environment("AWS_ENDPOINT_URL_S3");
      endpoint = of_s3 ? *of_s3 : context.environment("AWS_ENDPOINT_URL").value_or("");
    }
    while (!endpoint.empty() && endpoint.back() == '/') endpoint.pop_back();
    return endpoint;
  }
  std::string Host() const {
    return "s3." + region_ + (region_.rfind("cn-", 0) == 0 ? ".amazonaws.com.cn" : ".amazonaws.com");
  }

  const std::string region_;
  const std::string endpoint_;  // without the last '/'; "": Amazon's
  CredentialCache credentials_;
};

}  // namespace

std::unique_ptr<Service> MakeS3(ServiceContext* context) { return std::make_unique<S3>(context); }

}  // namespace headrace::side
