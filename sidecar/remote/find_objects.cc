#include "sidecar/remote/find_objects.h"

#include <fnmatch.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <tuple>

#include "sidecar/remote/key_ranges.h"
#include "sidecar/remote/object.h"
#include "sidecar/remote/small_request.h"
#include "sidecar/remote/url.h"
#include "sidecar/remote/xml.h"

namespace headrace::side {
namespace {

// Requests under way: few at first, so that the first answers do not share a slow server with a hundred others.
constexpr size_t kAtOnceAtFirst = 8;
constexpr size_t kMostAtOnce = 64;
constexpr size_t kAtOnceWithoutHurry = 4;
constexpr char kGlobCharacters[] = "*?[\\";

// A part of the answer, which one request, or several in a row, can give.
struct Part {
  size_t wanted = 0;  // index of its path
  // Below the folder `base` ("" or with its last '/'), what matches the glob `name`, which holds no '/', and below that
  // `rest`. An empty name: the object `base` itself.
  std::string base;
  std::string name;
  std::string rest;
  bool may_lack = false;  // a glob led here, so that the object may be missing
  // Of the keys alone that are greater than `after` and, unless that is "", not greater than `last`.
  std::string after;
  std::string last;
  std::string seen;      // the last key or folder of the pages before
  std::string token;     // of the page that is to be asked for; "": the first
  bool expired = false;  // its credentials were replaced once

  bool is_object() const { return name.empty(); }
  // What all keys share.
  std::string prefix() const { return base + name.substr(0, name.find_first_of(kGlobCharacters)); }
  // No key that it can lead to is less.
  std::string from() const { return std::max({prefix(), after, seen}); }
};

// What matches `pattern` below `base`.
Part MakePart(size_t wanted, const std::string& base, const std::string& pattern) {
  Part part;
  part.wanted = wanted;
  const size_t glob = pattern.find_first_of(kGlobCharacters);
  const size_t slash = glob == std::string::npos ? std::string::npos : pattern.rfind('/', glob);
  const size_t begin = slash == std::string::npos ? 0 : slash + 1;
  const size_t end = std::min(pattern.find('/', glob == std::string::npos ? 0 : glob), pattern.size());
  if (glob == std::string::npos) {
    part.base = base + pattern;
  } else {
    part.base = base + pattern.substr(0, begin);
    part.name = pattern.substr(begin, end - begin);
    part.rest = end < pattern.size() ? pattern.substr(end + 1) : "";
  }
  return part;
}

std::string ListUrl(const Service& service, const std::string& bucket, const Part& part) {
  std::vector<std::pair<std::string, std::string>> query = {
      {"list-type", "2"}, {"prefix", part.prefix()}, {"delimiter", "/"}, {"encoding-type", "url"}};
  if (!part.after.empty() && part.token.empty()) query.emplace_back("start-after", part.after);
  if (!part.token.empty()) query.emplace_back("continuation-token", part.token);
  return service.BucketUrl(bucket) + "?" + QueryOf(std::move(query));
}

// "s3://bucket/" of such a path; a URL has none.
std::string RootOf(const std::string& path) {
  const ObjectName name = SplitObjectPath(path);
  return name.scheme + "://" + name.bucket + "/";
}

// Asks for one part's next page, or about its object.
class PartCall : public Call {
 public:
  PartCall(Part asked, Service* service, std::string url)
      : Call(SplitUrl(url).origin()), part(std::move(asked)), service_(*service), url_(std::move(url)) {}

  Request Prepare() override {
    Request request;
    request.url = url_;
    // A byte and not HEAD: refusals then come with their reason, and web servers show whether they serve ranges.
    if (part.is_object()) request.headers.push_back("Range: bytes=0-0");
    request.patient = !part.is_object();
    used = service_.Authorize(&request);
    return request;
  }
  std::optional<std::span<uint8_t>> Body(const Reply& reply) override {
    whole_file_ = part.is_object() && reply.status == 200;
    if (whole_file_) return {};
    return std::span<uint8_t>();
  }
  Fate Judge(Reply& reply) override {
    if (!whole_file_) return FateOf(reply);
    reply.error = "it sends whole files only, and parts are needed: put the file where Range requests are answered";
    return Fate::kFailed;
  }

  Part part;
  std::shared_ptr<const Credentials> used;

 private:
  Service& service_;
  const std::string url_;
  bool whole_file_ = false;
};

// What a user who mistyped a path needs to see: the nearest folder that holds something, and a few of its names.
std::string WhatIsThere(Service& service, Transfers* transfers, const std::string& path) {
  const ObjectName object = SplitObjectPath(path);
  std::string folder = object.key.substr(0, object.key.find_first_of(kGlobCharacters));
  while (true) {
    const size_t slash = folder.empty() ? std::string::npos : folder.rfind('/', folder.size() - 1);
    folder = slash == std::string::npos ? "" : folder.substr(0, slash + 1);
    Request request;
    request.url = ListUrl(service, object.bucket, Part{.base = folder});
    request.patient = true;
    service.Authorize(&request);
    const Reply reply = SendSmall(transfers, request);
    const auto page = ParseListPage(reply.text);
    if (reply.status != 200 || !page.ok()) return "and what is there may not be listed";
    std::vector<std::string> names;
    for (const ListedObject& listed : page->objects) names.push_back(listed.key.substr(folder.size()));
    for (const std::string& prefix : page->prefixes) names.push_back(prefix.substr(folder.size()));
    std::erase(names, "");
    const std::string where = (folder.empty() ? "bucket " : "folder ") + RootOf(path) + folder;
    if (names.empty() && folder.empty()) return where + " is empty";
    if (names.empty()) {
      folder.pop_back();
      continue;
    }
    std::sort(names.begin(), names.end());
    std::string text = where + " holds ";
    for (size_t i = 0; i < names.size() && i < 5; ++i) text += (i > 0 ? ", " : "") + names[i];
    if (names.size() > 5) text += " and " + (page->truncated ? "more" : std::to_string(names.size() - 5) + " more");
    return text;
  }
}

}  // namespace

class ObjectListing::Finder {
 public:
  Finder(std::vector<WantedPath> paths, Transfers* transfers)
      : paths_(std::move(paths)), transfers_(*transfers), answers_(paths_.size()) {
    for (size_t i = 0; i < paths_.size(); ++i) {
      if (!Lists(i)) {
        Add({.wanted = i});
        continue;
      }
      answers_[i].bucket = SplitObjectPath(paths_[i].path).bucket;
      Add(MakePart(i, "", SplitObjectPath(paths_[i].path).key));
    }
  }
  ~Finder() {
    for (const auto& call : calls_) transfers_.Cancel(*call);
  }
  Finder(const Finder&) = delete;
  Finder& operator=(const Finder&) = delete;

  Status AwaitFirst(size_t wanted) {
    Answer& answer = answers_[wanted];
    while (answer.error.ok() && !answer.any && !answer.whole()) Step();
    if (answer.error.ok() && !answer.any) {
      const WantedPath& path = paths_[wanted];
      answer.error = NotFound(path.path + " matches no object; " + WhatIsThere(*path.service, &transfers_, path.path));
    }
    return answer.error;
  }

  Result<std::vector<FoundObject>> Next(size_t wanted) {
    RETURN_IF_ERROR(AwaitFirst(wanted));
    Answer& answer = answers_[wanted];
    while (true) {
      RETURN_IF_ERROR(answer.error);
      const auto end = answer.whole() ? answer.found.end() : answer.found.lower_bound(*answer.open.begin());
      std::vector<FoundObject> next;
      for (auto it = answer.found.begin(); it != end; it = answer.found.erase(it)) {
        answer.given = it->first;
        next.push_back(std::move(it->second));
      }
      if (!next.empty() || answer.whole()) return next;
      Step();
    }
  }

  void SetHurry(bool hurry) { hurry_.store(hurry, std::memory_order_relaxed); }

 private:
  struct Answer {
    std::string bucket;
    std::map<std::string, FoundObject> found;  // by key; those that Next has not returned yet
    std::string given;                         // the key of the last one that it has
    std::multiset<std::string> open;           // from() of each part that is not answered yet
    std::set<std::string> folders;             // that globs have led to: ranges of keys may meet in one
    bool any = false;                          // whether anything was found
    Status error;

    bool whole() const { return open.empty(); }
  };
  // What is asked for first: something of every path, then path after path, in the order of their keys.
  using Place = std::tuple<bool, size_t, std::string>;

  void Add(Part part) {
    std::string from = part.from();
    answers_[part.wanted].open.insert(from);
    const bool again = !part.token.empty() || !part.after.empty() || part.may_lack;
    parts_.emplace(Place{again, part.wanted, std::move(from)}, std::move(part));
  }

  // Sends what may be sent, and takes what comes next.
  void Step() {
    const size_t most = hurry_.load(std::memory_order_relaxed) ? at_once_ : kAtOnceWithoutHurry;
    while (!parts_.empty() && calls_.size() < most) Ask(parts_.extract(parts_.begin()).mapped());
    if (calls_.empty()) return;
    std::vector<Call*> under_way;
    for (const auto& call : calls_) under_way.push_back(call.get());
    transfers_.AwaitAny(under_way);
    for (size_t i = calls_.size(); i-- > 0;) {
      if (!transfers_.IsDone(*calls_[i])) continue;
      const std::unique_ptr<PartCall> call = std::move(calls_[i]);
      calls_.erase(calls_.begin() + static_cast<ptrdiff_t>(i));
      std::multiset<std::string>& open = answers_[call->part.wanted].open;
      open.erase(open.find(call->part.from()));
      at_once_ = std::min(at_once_ + 1, kMostAtOnce);
      Take(*call);
    }
  }

  bool Lists(size_t wanted) const { return !paths_[wanted].service->BucketUrl("b").empty(); }

  void Ask(Part part) {
    const WantedPath& wanted = paths_[part.wanted];
    Answer& answer = answers_[part.wanted];
    if (answer.error.ok()) answer.error = wanted.service->Prepare().WithContext(ShownPath(wanted.path));
    if (!answer.error.ok()) return;
    std::string url = !part.is_object()    ? ListUrl(*wanted.service, answer.bucket, part)
                      : Lists(part.wanted) ? wanted.service->UrlOf(RootOf(wanted.path) + part.base)
                                           : wanted.service->UrlOf(wanted.path);
    calls_.push_back(std::make_unique<PartCall>(std::move(part), wanted.service, std::move(url)));
    transfers_.Start(*calls_.back());
  }

  void Take(PartCall& call) {
    Part& part = call.part;
    const WantedPath& wanted = paths_[part.wanted];
    Answer& answer = answers_[part.wanted];
    if (!answer.error.ok()) return;
    const Reply& reply = call.reply();
    const std::string path = part.is_object() && Lists(part.wanted) ? RootOf(wanted.path) + part.base : wanted.path;
    if (part.is_object() && reply.status == 416) {
      Found({path, 0, ""}, part.base, &answer);  // an empty object has no first byte
    } else if (reply.status == 404 && part.may_lack) {
      return;
    } else if (call.fate() != Fate::kDone) {
      if (SaysExpired(reply) && call.used != nullptr && !part.expired) {
        answer.error = wanted.service->Replace(call.used).WithContext(wanted.path);
        part.expired = true;
        Add(std::move(part));
        return;
      }
      answer.error = Refusal(*wanted.service, ShownPath(path), reply, call.used.get());
      if (reply.status == 404 && Lists(part.wanted) && ParseStoreError(reply.text).code != "NoSuchBucket") {
        answer.error = NotFound(path + " is not there; " + WhatIsThere(*wanted.service, &transfers_, path));
      }
    } else if (part.is_object()) {
      TakeObject(path, part.base, reply, &answer);
    } else {
      TakePage(std::move(part), reply, &answer);
    }
  }

  static void Found(FoundObject object, const std::string& key, Answer* answer) {
    if (!answer->given.empty() && key <= answer->given) {
      answer->error = Unavailable(ShownPath(object.path) + ": the server lists it after " + answer->given +
                                  ": listings must be in lexical order; name the objects one by one");
      return;
    }
    answer->any = true;
    answer->found.emplace(key, std::move(object));
  }

  static void TakeObject(const std::string& path, const std::string& key, const Reply& reply, Answer* answer) {
    const auto range = ParseContentRange(reply.Header("content-range"));
    if (reply.status == 200) {  // without a body
      Found({path, 0, VersionOf(reply)}, key, answer);
    } else if (range) {
      Found({path, range->size, VersionOf(reply)}, key, answer);
    } else {
      answer->error =
          Unavailable(ShownPath(path) + ": the server does not say how large it is: its Content-Range is \"" +
                      reply.Header("content-range") + "\"; put the file where it does");
    }
  }

  void TakePage(Part part, const Reply& reply, Answer* answer) {
    const std::string& path = paths_[part.wanted].path;
    auto page = ParseListPage(reply.text);
    if (!page.ok()) {
      answer->error = page.status().WithContext(path);
      return;
    }
    bool more = page->truncated;
    for (const std::string& folder : page->prefixes) part.seen = std::max(part.seen, folder);
    for (ListedObject& object : page->objects) {
      part.seen = std::max(part.seen, object.key);
      if (!part.last.empty() && object.key > part.last) {
        more = false;
        break;
      }
      const std::string name = object.key.substr(std::min(part.base.size(), object.key.size()));
      if (name.empty() || !part.rest.empty() || fnmatch(part.name.c_str(), name.c_str(), 0) != 0) continue;
      Found({RootOf(path) + object.key, object.size, std::move(object.version)}, object.key, answer);
    }
    for (const std::string& folder : page->prefixes) {
      if (part.rest.empty() || folder.size() <= part.base.size()) continue;
      const std::string name = folder.substr(part.base.size(), folder.size() - part.base.size() - 1);
      if (fnmatch(part.name.c_str(), name.c_str(), 0) != 0 || !answer->folders.insert(folder).second) continue;
      Part below = MakePart(part.wanted, folder, part.rest);
      below.may_lack = true;
      Add(std::move(below));
    }
    if (!more) return;
    // What is left goes on where this page ended, and at the same time from every boundary on.
    if (part.token.empty() && part.rest.empty()) {
      const std::vector<std::string> boundaries = KeyBoundaries(page->objects, part.prefix().size(), part.last);
      for (size_t i = 0; i < boundaries.size(); ++i) {
        Part range = part;
        range.after = boundaries[i];
        range.last = i + 1 < boundaries.size() ? boundaries[i + 1] : part.last;
        Add(std::move(range));
      }
      if (!boundaries.empty()) part.last = boundaries[0];
    }
    part.token = page->next_token;
    Add(std::move(part));
  }

  const std::vector<WantedPath> paths_;
  Transfers& transfers_;
  std::vector<Answer> answers_;
  std::multimap<Place, Part> parts_;
  std::vector<std::unique_ptr<PartCall>> calls_;
  size_t at_once_ = kAtOnceAtFirst;
  std::atomic<bool> hurry_{true};
};

ObjectListing::ObjectListing(std::vector<WantedPath> paths, Transfers* transfers)
    : finder_(std::make_unique<Finder>(std::move(paths), transfers)) {}

ObjectListing::~ObjectListing() = default;

Status ObjectListing::AwaitFirst(size_t path) { return finder_->AwaitFirst(path); }

Result<std::vector<FoundObject>> ObjectListing::Next(size_t path) { return finder_->Next(path); }

void ObjectListing::SetHurry(bool hurry) { finder_->SetHurry(hurry); }

}  // namespace headrace::side
