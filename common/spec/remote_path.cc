#include "common/spec/remote_path.h"

namespace headrace {

bool IsRemotePath(std::string_view path) {
  const size_t end = path.find("://");
  return end != std::string_view::npos && end > 0 &&
         path.substr(0, end).find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.") ==
             std::string_view::npos;
}

std::string RemotePathError(std::string_view path) {
  const size_t end = path.find("://");
  const std::string_view scheme = path.substr(0, end);
  const std::string_view rest = path.substr(end + 3);
  const size_t slash = rest.find('/');
  const std::string_view host = rest.substr(0, slash);
  const std::string_view key = slash == std::string_view::npos ? "" : rest.substr(slash + 1);
  if (scheme == "s3" || scheme == "gs") {
    if (host.empty() || host.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") !=
                            std::string_view::npos) {
      return "names no bucket; write " + std::string(scheme) + "://BUCKET/KEY";
    }
    if (key.empty() || key.back() == '/') return "names a bucket or folder; name its objects, by a glob as in */part-*";
    return "";
  }
  if (scheme == "http" || scheme == "https") {
    if (host.empty() || key.empty()) return "names no file of a web server";
    if (host.find('@') != std::string_view::npos) return "holds a login, which everybody could read; leave it out";
    if (rest.substr(0, rest.find('?')).find_first_of("*[") != std::string_view::npos) {
      return "is a glob, and web servers do not list their files; name each file";
    }
    return "";
  }
  return "has the scheme \"" + std::string(scheme) + "\"; s3, gs, http and https are offered, and paths of a volume";
}

}  // namespace headrace
