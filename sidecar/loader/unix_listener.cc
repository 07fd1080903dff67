#include "sidecar/loader/unix_listener.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace headrace::side {

Result<int> ListenUnix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return InvalidArgument("HEADRACE_DIR: socket path \"" + path + "\" has " + std::to_string(path.size()) +
                           " characters; a Unix socket's takes at most " + std::to_string(sizeof address.sun_path - 1) +
                           ": use a shorter folder");
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener < 0) return ErrnoStatus(errno, "socket");
  unlink(path.c_str());
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      // The other containers run as other users than the loader; the run directory says who may come near.
      chmod(path.c_str(), 0666) != 0 || listen(listener, 128) != 0) {
    const Status status = ErrnoStatus(errno, path);
    close(listener);
    return status;
  }
  return listener;
}

}  // namespace headrace::side
