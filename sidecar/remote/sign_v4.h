// AWS Signature Version 4, in headers.
#pragma once

#include <ctime>
#include <string>

#include "sidecar/remote/transfers.h"

namespace headrace::side {

struct AwsKeys {
  std::string access_key;
  std::string secret_key;
  std::string session_token;  // of keys that expire
};

// Signs the request as it is, all of its headers included, adding x-amz-date, x-amz-content-sha256, Authorization and,
// with a session token, x-amz-security-token. REQUIRES: the URL's query is sorted and encoded as QueryOf does it, and
// its path as PercentEncode.
void SignV4(const AwsKeys& keys, const std::string& region, const std::string& service, std::time_t now,
            Request* request);

}  // namespace headrace::side
