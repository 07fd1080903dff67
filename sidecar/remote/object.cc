#include "sidecar/remote/object.h"

#include <charconv>

#include "sidecar/remote/url.h"

namespace headrace::side {
namespace {

bool IsEtag(const std::string& version) { return version.rfind('"', 0) == 0 || version.rfind("W/", 0) == 0; }

}  // namespace

std::string VersionOf(const Reply& reply) {
  const std::string etag = reply.Header("etag");
  return IsEtag(etag) ? etag : reply.Header("last-modified");
}

std::optional<ContentRange> ParseContentRange(const std::string& text) {
  ContentRange range;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto number = [&](uint64_t* value, char after) {
    const auto [next, error] = std::from_chars(at, end, *value);
    if (error != std::errc() || (after != '\0' ? next == end || *next != after : next != end)) return false;
    at = next + 1;
    return true;
  };
  if (text.rfind("bytes ", 0) != 0) return {};
  at += 6;
  if (!number(&range.first, '-') || !number(&range.last, '/') || !number(&range.size, '\0')) return {};
  return range;
}

Object::Object(Service* service, Transfers* transfers, const std::string& path, uint64_t size, std::string version,
               std::atomic<uint64_t>* bytes_read)
    : service_(*service),
      transfers_(*transfers),
      path_(ShownPath(path)),
      url_(service->UrlOf(path)),
      size_(size),
      bytes_read_(*bytes_read),
      version_(std::move(version)) {}

std::string Object::Condition() const {
  const std::lock_guard lock(mutex_);
  // A weak ETag matches nothing here, and a date is taken for that of a later change by servers that keep fractions of
  // a second.
  return version_.rfind('"', 0) == 0 ? "If-Match: " + version_ : "";
}

bool Object::IsSame(const Reply& reply) {
  const std::lock_guard lock(mutex_);
  if (version_.empty()) {
    version_ = VersionOf(reply);
    return true;
  }
  const std::string now = reply.Header(IsEtag(version_) ? "etag" : "last-modified");
  return now.empty() || now == version_;
}

ObjectRead::ObjectRead(Object* object, uint64_t offset, std::span<uint8_t> out)
    : Call(SplitUrl(object->url_).origin()), object_(*object), offset_(offset), out_(out) {
  if (out_.empty()) return;
  status_ = object_.service_.Prepare();
  if (status_.ok()) object_.transfers_.Start(*this);
}

ObjectRead::~ObjectRead() { object_.transfers_.Cancel(*this); }

Status ObjectRead::Finish() {
  if (!status_.ok()) return status_.WithContext(object_.path_);
  bool replaced = false;
  while (!out_.empty()) {
    object_.transfers_.Await(*this);
    if (fate() == Fate::kDone) break;
    const std::string where = object_.path_ + ": at byte " + std::to_string(offset_ + read_);
    if (changed_) {
      return Conflict(where +
                      ": the object was written anew since it was found; write new data under new names, and "
                      "start the run again");
    }
    if (!SaysExpired(reply()) || used_ == nullptr || replaced) {
      return Refusal(object_.service_, where, reply(), used_.get());
    }
    replaced = true;
    RETURN_IF_ERROR(object_.service_.Replace(used_), object_.path_);
    object_.transfers_.Start(*this);
  }
  return {};
}

Request ObjectRead::Prepare() {
  Request request;
  request.url = object_.url_;
  // From where the last attempt broke off.
  request.headers.push_back("Range: bytes=" + std::to_string(offset_ + read_) + "-" +
                            std::to_string(offset_ + out_.size() - 1));
  if (std::string condition = object_.Condition(); !condition.empty()) request.headers.push_back(std::move(condition));
  used_ = object_.service_.Authorize(&request);
  refused_.clear();
  return request;
}

std::optional<std::span<uint8_t>> ObjectRead::Body(const Reply& reply) {
  if (reply.status == 200) {
    // A server that knows no ranges sends all of it, which is right if all was asked for.
    if (offset_ + read_ == 0 && out_.size() == object_.size_) return out_;
    no_ranges_ = true;
    return {};
  }
  if (reply.status != 206) return std::span<uint8_t>();  // an error, in words
  const std::string text = reply.Header("content-range");
  const std::optional<ContentRange> range = ParseContentRange(text);
  changed_ = !object_.IsSame(reply) || (range && range->size != object_.size_);
  if (changed_) return {};
  if (!range || range->first != offset_ + read_ || range->last != offset_ + out_.size() - 1) {
    refused_ = "the server sent \"" + text + "\" where bytes " + std::to_string(offset_ + read_) + "-" +
               std::to_string(offset_ + out_.size() - 1) + " were asked for";
    return {};
  }
  return out_.subspan(read_);
}

Fate ObjectRead::Judge(Reply& reply) {
  read_ += reply.received;
  object_.bytes_read_.fetch_add(reply.received, std::memory_order_relaxed);
  if (read_ == out_.size()) return Fate::kDone;
  changed_ = changed_ || reply.status == 412 || reply.status == 416;
  if (changed_) return Fate::kFailed;
  if (no_ranges_) {
    reply.error = "it sends whole files only, and parts are needed: put the file where Range requests are answered";
    return Fate::kFailed;
  }
  if (!refused_.empty()) {
    reply.error = refused_;
    return Fate::kAgain;
  }
  const Fate fate = FateOf(reply);
  if (fate != Fate::kDone) return fate;
  reply.error = "the reply has too few bytes";
  return Fate::kAgain;
}

}  // namespace headrace::side
