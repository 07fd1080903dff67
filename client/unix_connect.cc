#include "client/unix_connect.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/ring/handshake.h"

namespace headrace::client {

Result<int> ConnectUnix(const std::string& directory, const char* file) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = directory + "/" + file;
  if (path.size() >= sizeof(address.sun_path)) {
    return InvalidArgument("run directory '" + directory + "' is too long: the path of a socket has at most " +
                           std::to_string(sizeof(address.sun_path) - 1) + " characters");
  }
  struct stat found {};
  if (stat(directory.c_str(), &found) != 0 && errno == ENOENT) {
    return NotFound("run directory '" + directory +
                    "' does not exist: give the pod the label headrace.dev/input, or set HEADRACE_DIR to the directory "
                    "of a loader");
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return ErrnoStatus(errno, "making a socket");
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    const int error = errno;
    close(fd);
    return Unavailable("connecting to the loader at " + path + ": " + std::strerror(error));
  }
  return fd;
}

Result<std::optional<std::string>> ReceiveWithin(int socket, int timeout_ms, int* fd) {
  *fd = -1;
  pollfd ready{socket, POLLIN, 0};
  const int count = poll(&ready, 1, timeout_ms);
  if (count < 0 && errno != EINTR) return ErrnoStatus(errno, "waiting on the loader's socket");
  if (count <= 0) return std::optional<std::string>();
  auto text = ring::ReceiveMessage(socket, 0, fd);
  if (!text.ok() && text.status().code() == Code::kUnavailable) return std::optional<std::string>("");
  RETURN_IF_ERROR(text);
  return std::optional<std::string>(std::move(*text));
}

}  // namespace headrace::client
