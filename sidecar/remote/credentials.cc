#include "sidecar/remote/credentials.h"

#include <cstdlib>

namespace headrace::side {
namespace {

// Before they expire; services give new ones from about this point on.
constexpr std::chrono::minutes kRenewBefore{5};

}  // namespace

Environment ProcessEnvironment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* const value = std::getenv(name);
    if (value == nullptr || *value == '\0') return {};
    return value;
  };
}

std::shared_ptr<const Credentials> CredentialCache::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

Status CredentialCache::Fetch() {
  auto fetched = fetch_();
  if (!fetched.ok()) return fetched.status();
  const std::lock_guard lock(mutex_);
  current_ = std::make_shared<const Credentials>(std::move(*fetched));
  return {};
}

Status CredentialCache::Renew() {
  const auto good_until = [](const std::shared_ptr<const Credentials>& credentials, auto margin) {
    return credentials != nullptr &&
           (!credentials->expires || std::chrono::system_clock::now() + margin < *credentials->expires);
  };
  if (good_until(current(), kRenewBefore)) return {};
  const std::lock_guard lock(renewing_);
  const auto now = current();
  if (good_until(now, kRenewBefore)) return {};  // another thread has asked meanwhile
  const Status status = Fetch();
  return good_until(now, std::chrono::seconds(0)) ? Status() : status;
}

Status CredentialCache::Replace(const std::shared_ptr<const Credentials>& used) {
  const std::lock_guard lock(renewing_);
  return current() == used ? Fetch() : Status();
}

}  // namespace headrace::side
