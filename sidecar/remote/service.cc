#include "sidecar/remote/service.h"

#include "sidecar/remote/xml.h"

namespace headrace::side {
namespace {

constexpr char kCredentialsField[] = "spec.source.files.objectStore.credentialsSecret";
constexpr char kRegionField[] = "spec.source.files.objectStore.region";
constexpr char kEndpointField[] = "spec.source.files.objectStore.endpoint";

// "403 AccessDenied: Access Denied."
std::string Said(const Reply& reply, const StoreError& error) {
  std::string text = std::to_string(reply.status);
  if (!error.code.empty()) text += " " + error.code;
  if (!error.message.empty()) text += ": " + error.message.substr(0, 300);
  return text;
}

std::string DeniedRemedy(const Service& service, const std::string& path, const Credentials* used) {
  if (service.BucketUrl("b").empty()) return "; the server serves it to nobody without a login, which is not offered";
  if (used == nullptr || used->source.empty()) {
    return std::string("; it was asked for without credentials: name a Secret in ") + kCredentialsField +
           ", or give the pod's service account an identity that may read it";
  }
  const bool google = path.rfind("gs:", 0) == 0;
  return "; " + used->source + " says who asks: allow it to read objects " +
         (google ? "(storage.objects.get) and, for globs, to list them (storage.objects.list)"
                 : "(s3:GetObject) and, for globs, to list the bucket (s3:ListBucket), without which objects that are "
                   "not there are refused too");
}

}  // namespace

std::unique_ptr<Service> MakeService(const std::string& scheme, ServiceContext* context) {
  if (scheme == "s3") return MakeS3(context);
  if (scheme == "gs") return MakeGs(context);
  return MakeHttp(context);
}

bool SaysExpired(const Reply& reply) {
  if (reply.status == 401) return true;  // of a token
  const std::string code = reply.status == 400 || reply.status == 403 ? ParseStoreError(reply.text).code : "";
  return code == "ExpiredToken" || code == "TokenRefreshRequired" || code == "InvalidToken";
}

Status Refusal(const Service& service, const std::string& where, const Reply& reply, const Credentials* used) {
  const std::string tried = reply.attempts > 1 ? " after " + std::to_string(reply.attempts) + " attempts" : "";
  if (reply.status == 0 || !reply.error.empty()) {
    if (reply.error == "stopped") return Cancelled(where + ": the read was stopped");
    return Unavailable(where + ": " + service.Place() + " cannot be read from" + tried + ": " + reply.error +
                       (reply.fatal ? "; check its certificate, or name its authority's in SSL_CERT_FILE"
                                    : std::string("; check ") + kEndpointField + " and the pod's way there"));
  }
  const StoreError error = ParseStoreError(reply.text);
  const std::string said = where + ": " + service.Place() + " answered" + tried + " with " + Said(reply, error);
  const std::string bucket_region =
      reply.Header("x-amz-bucket-region").empty() ? error.region : reply.Header("x-amz-bucket-region");
  if (!bucket_region.empty() && (reply.status == 301 || reply.status == 307 || reply.status == 400)) {
    return InvalidArgument(said + "; the bucket is in region " + bucket_region + ": set " + kRegionField + " to it");
  }
  if (error.code == "NoSuchBucket") {
    return NotFound(said + "; check the bucket's name in spec.source.files.paths, and " + kEndpointField);
  }
  if (error.code == "InvalidAccessKeyId" || error.code == "SignatureDoesNotMatch") {
    return Unavailable(said + "; check the keys in the Secret of " + kCredentialsField);
  }
  if (error.code == "RequestTimeTooSkewed") return Unavailable(said + "; set the node's clock");
  switch (reply.status) {
    case 401:
    case 403: return Unavailable(said + DeniedRemedy(service, where, used));
    case 404: return NotFound(said + "; check the path in spec.source.files.paths");
    case 429:
    case 503: return Unavailable(said + "; the store takes no more requests: use fewer workers, or try later");
    default: return Unavailable(said);
  }
}

}  // namespace headrace::side
