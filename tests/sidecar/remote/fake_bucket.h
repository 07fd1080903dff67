// A bucket of an object store, behind HttpFaults.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "sidecar/remote/url.h"
#include "tests/fakes/http_faults.h"

namespace headrace::side {

// ListObjectsV2 by its documentation, over a set of keys in one bucket, each object holding its own key.
class FakeBucket {
 public:
  FakeBucket(std::set<std::string> keys, size_t page) : keys_(std::move(keys)), page_(page) {}

  fakes::Answer operator()(const fakes::SeenRequest& request) const {
    const UrlParts url = SplitUrl("http://a.example" + request.target);
    if (url.path != "/bucket") {
      const std::string key = PercentDecode(url.path).substr(8);
      if (keys_.count(key) > 0) return fakes::RangeOf(request, key);
      return Error(404, "NoSuchKey");
    }
    std::map<std::string, std::string> query;
    for (size_t at = 0; at < url.query.size();) {
      const size_t end = std::min(url.query.find('&', at), url.query.size());
      const std::string field = url.query.substr(at, end - at);
      query[field.substr(0, field.find('='))] = PercentDecode(field.substr(field.find('=') + 1));
      at = end + 1;
    }
    const std::string& prefix = query["prefix"];
    const std::string after =
        query.count("continuation-token") > 0 ? PercentDecode(query["continuation-token"]) : query["start-after"];
    std::string xml = "<ListBucketResult><EncodingType>url</EncodingType>";
    size_t listed = 0;
    std::string last;
    bool truncated = false;
    for (auto key = keys_.lower_bound(std::max(prefix, after)); key != keys_.end() && key->rfind(prefix, 0) == 0;
         ++key) {
      const size_t slash = key->find('/', prefix.size());
      const std::string entry = slash == std::string::npos ? *key : key->substr(0, slash + 1);
      if (entry <= after || entry == last) continue;
      truncated = listed == page_;
      if (truncated) break;
      ++listed;
      last = entry;
      xml += slash == std::string::npos
                 ? "<Contents><Key>" + PercentEncode(entry) + "</Key><ETag>&quot;v1&quot;</ETag><Size>" +
                       std::to_string(entry.size()) + "</Size></Contents>"
                 : "<CommonPrefixes><Prefix>" + PercentEncode(entry) + "</Prefix></CommonPrefixes>";
    }
    if (truncated) {
      xml +=
          "<IsTruncated>true</IsTruncated><NextContinuationToken>" + PercentEncode(last) + "</NextContinuationToken>";
    }
    return Body(xml + "</ListBucketResult>");
  }

 private:
  static fakes::Answer Body(std::string body) {
    fakes::Answer answer;
    answer.body = std::move(body);
    return answer;
  }
  static fakes::Answer Error(int status, const std::string& code) {
    fakes::Answer answer = Body("<Error><Code>" + code + "</Code></Error>");
    answer.status = status;
    return answer;
  }

  const std::set<std::string> keys_;
  const size_t page_;
};

}  // namespace headrace::side
