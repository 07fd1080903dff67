#include "operator/kube/client.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <thread>

#include "operator/kube/object.h"
#include "operator/kube/transport.h"

namespace headrace::kube {
namespace {

using nlohmann::json;

std::string Encoded(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || c == '-' || c == '.' || c == '_' || c == '~') {
      out += c;
    } else {
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return out;
}

Code CodeOfHttp(int status) {
  switch (status) {
    case 404: return Code::kNotFound;
    case 409: return Code::kConflict;
    case 410: return Code::kExhausted;
    case 401:  // a token on the verge of its rotation
    case 403:  // a permission may be granted later
    case 408:
    case 429: return Code::kUnavailable;
    default: return status >= 500 ? Code::kUnavailable : Code::kInvalidArgument;
  }
}

// Seconds of Retry-After; none if it is absent or a date.
std::optional<std::chrono::seconds> RetryAfter(const HttpReply& reply) {
  const auto it = reply.headers.find("retry-after");
  if (it == reply.headers.end()) return std::nullopt;
  int seconds = 0;
  const std::string& text = it->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds < 0) return std::nullopt;
  return std::chrono::seconds(seconds);
}

Result<json> Parsed(const HttpReply& reply, std::string_view what) {
  json body = json::parse(reply.body, nullptr, false);
  if (!body.is_object()) return Unavailable(std::string(what) + ": the reply is not a JSON object");
  return body;
}

std::string WhatOf(const HttpCall& call) { return call.method + " " + call.target.substr(0, call.target.find('?')); }

}  // namespace

std::string PathOf(const Resource& resource, std::string_view name_space, std::string_view name) {
  std::string path = resource.group.empty() ? "/api/" : "/apis/" + resource.group + "/";
  path += resource.version;
  if (resource.namespaced && !name_space.empty()) path += "/namespaces/" + Encoded(name_space);
  path += "/" + resource.plural;
  if (!name.empty()) path += "/" + Encoded(name);
  return path;
}

std::string QueryOf(const std::vector<std::pair<std::string, std::string>>& parameters) {
  std::string query;
  for (const auto& [name, value] : parameters) {
    if (!query.empty()) query += '&';
    query += Encoded(name) + "=" + Encoded(value);
  }
  return query;
}

Status StatusOfReply(const HttpReply& reply, std::string_view what) {
  if (reply.status / 100 == 2) return {};
  const json body = json::parse(reply.body, nullptr, false);
  std::string message = StringAt(body, {"message"});
  if (message.empty()) message = reply.body.substr(0, 200);
  return {CodeOfHttp(reply.status), std::string(what) + ": HTTP " + std::to_string(reply.status) + ": " + message};
}

Client::Client(HttpTransport* transport, ClientOptions options) : transport_(transport), options_(std::move(options)) {}

Result<HttpReply> Client::SendCounted(const HttpCall& call) {
  const auto start = std::chrono::steady_clock::now();
  Result<HttpReply> reply = transport_->Send(call);
  if (options_.on_request) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    options_.on_request(call.method, reply.ok() ? std::to_string(reply->status) : "<error>", took.count());
  }
  return reply;
}

Result<json> Client::Call(const HttpCall& call) {
  for (int attempt = 0;; ++attempt) {
    ASSIGN_OR_RETURN(const HttpReply reply, SendCounted(call));
    const Status status = StatusOfReply(reply, WhatOf(call));
    if (status.ok()) return Parsed(reply, WhatOf(call));
    const auto wait = reply.status == 429 || reply.status == 503 ? RetryAfter(reply) : std::nullopt;
    if (!wait || attempt >= options_.retry_attempts) return status;
    if (options_.on_retry) options_.on_retry(call.method, std::to_string(reply.status));
    const auto bounded = std::min<std::chrono::milliseconds>(*wait, options_.retry_after_cap);
    if (options_.sleep) {
      options_.sleep(bounded);
    } else {
      std::this_thread::sleep_for(bounded);
    }
  }
}

Result<json> Client::Get(const Resource& resource, const std::string& name_space, const std::string& name) {
  return Call({.method = "GET", .target = PathOf(resource, name_space, name)});
}

Result<json> Client::GetRemembered(const Resource& resource, const std::string& name_space, const std::string& name) {
  return Call({.method = "GET", .target = PathOf(resource, name_space, name) + "?resourceVersion=0"});
}

Result<std::string> Client::ListEach(const Resource& resource, const std::string& name_space,
                                     const std::string& label_selector, const std::function<void(json item)>& on_item) {
  std::string token;
  for (;;) {
    std::vector<std::pair<std::string, std::string>> query = {{"limit", std::to_string(options_.page_size)}};
    if (!label_selector.empty()) query.emplace_back("labelSelector", label_selector);
    if (!token.empty()) query.emplace_back("continue", token);
    const std::string target = PathOf(resource, name_space, "") + "?" + QueryOf(query);
    ASSIGN_OR_RETURN(json page, Call({.method = "GET", .target = target}));
    const auto items = page.find("items");
    if (items != page.end() && items->is_array()) {
      for (json& item : *items) {
        item["apiVersion"] = resource.api_version();
        item["kind"] = resource.kind;
        on_item(std::move(item));
      }
    }
    token = StringAt(page, {"metadata", "continue"});
    if (token.empty()) return ResourceVersionOf(page);
  }
}

Result<Client::Listing> Client::List(const Resource& resource, const std::string& name_space,
                                     const std::string& label_selector) {
  for (int attempt = 0;; ++attempt) {
    Listing listing;
    Result<std::string> version =
        ListEach(resource, name_space, label_selector, [&](json item) { listing.items.push_back(std::move(item)); });
    if (version.ok()) {
      listing.resource_version = *std::move(version);
      return listing;
    }
    if (version.status().code() != Code::kExhausted || attempt > 0) return version.status();
  }
}

Result<json> Client::Create(const Resource& resource, const json& object) {
  const std::string query = QueryOf({{"fieldManager", options_.field_manager}});
  return Call({.method = "POST",
               .target = PathOf(resource, NamespaceOf(object), "") + "?" + query,
               .content_type = "application/json",
               .body = object.dump()});
}

Result<json> Client::ApplyTo(const Resource& resource, const json& object, const std::string& subresource) {
  const std::string query = QueryOf({{"fieldManager", options_.field_manager}, {"force", "true"}});
  return Call({.method = "PATCH",
               .target = PathOf(resource, NamespaceOf(object), NameOf(object)) + subresource + "?" + query,
               .content_type = "application/apply-patch+yaml",  // JSON is YAML
               .body = object.dump()});
}

Result<json> Client::Apply(const Resource& resource, const json& object) { return ApplyTo(resource, object, ""); }

Result<json> Client::ApplyStatus(const Resource& resource, const json& object) {
  return ApplyTo(resource, object, "/status");
}

Result<json> Client::MergePatch(const Resource& resource, const std::string& name_space, const std::string& name,
                                const json& patch) {
  const std::string query = QueryOf({{"fieldManager", options_.field_manager}});
  return Call({.method = "PATCH",
               .target = PathOf(resource, name_space, name) + "?" + query,
               .content_type = "application/merge-patch+json",
               .body = patch.dump()});
}

Result<json> Client::Replace(const Resource& resource, const json& object) {
  const std::string query = QueryOf({{"fieldManager", options_.field_manager}});
  return Call({.method = "PUT",
               .target = PathOf(resource, NamespaceOf(object), NameOf(object)) + "?" + query,
               .content_type = "application/json",
               .body = object.dump()});
}

Status Client::Delete(const Resource& resource, const std::string& name_space, const std::string& name,
                      const std::string& uid) {
  json body = {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"propagationPolicy", "Background"}};
  if (!uid.empty()) body["preconditions"]["uid"] = uid;
  const Result<json> reply = Call({.method = "DELETE",
                                   .target = PathOf(resource, name_space, name),
                                   .content_type = "application/json",
                                   .body = body.dump()});
  if (reply.status().code() == Code::kNotFound) return {};
  return reply.status();
}

}  // namespace headrace::kube
