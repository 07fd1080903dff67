// Processes as the containers of a pod are: in PID, mount and IPC namespaces of their own, each with a /dev/shm of its
// own and, where the kernel allows it, a /proc. What they share is a folder, bound into each as an emptyDir is. User
// namespaces allow it without privileges.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "common/base/unique_fd.h"

namespace headrace::testing {

enum class Namespaces { kShared, kOwn };

// Where processes with namespaces of their own find the folder.
inline constexpr char kVolume[] = "/dev/shm/volume";

// Where a process finds a path of the folder.
inline std::string PathInside(Namespaces namespaces, const std::string& folder, const std::string& path) {
  return namespaces == Namespaces::kShared ? path : kVolume + path.substr(folder.size());
}

inline bool WriteTo(const char* path, const std::string& text) {
  const UniqueFd file(open(path, O_WRONLY | O_CLOEXEC));
  return write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// In a child that is alone in its namespaces: makes of them what a container has. Returns what the kernel refused;
// null: nothing.
inline const char* Furnish(const std::string& folder, uid_t uid, gid_t gid) {
  const auto itself = [](unsigned id) { return std::to_string(id) + " " + std::to_string(id) + " 1"; };
  if (!WriteTo("/proc/self/setgroups", "deny") || !WriteTo("/proc/self/uid_map", itself(uid)) ||
      !WriteTo("/proc/self/gid_map", itself(gid))) {
    return "the map of users";
  }
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return "mounts of its own";
  const UniqueFd volume(open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const std::string source = "/proc/self/fd/" + std::to_string(volume.get());
  if (mount("tmpfs", "/dev/shm", "tmpfs", 0, nullptr) != 0) return "a /dev/shm of its own";
  if (mkdir(kVolume, 0755) != 0 || mount(source.c_str(), kVolume, nullptr, MS_BIND, nullptr) != 0) return "the folder";
  // Refused where parts of /proc are covered, as in containers; then /proc/self is right in the old one, too.
  if (mount("proc", "/proc", "proc", 0, nullptr) != 0 && errno != EPERM) return "a /proc of its own";
  return nullptr;
}

// As fork(); the child, which dies with its parent, must exec or _exit. It is process 1 where its namespaces are its
// own. -1 with errno where the kernel refuses namespaces; the child ends with status 125 where it cannot furnish them.
inline pid_t ForkInto(Namespaces namespaces, const std::string& folder) {
  const pid_t parent = getpid();
  const uid_t uid = geteuid();
  const gid_t gid = getegid();
  const bool own = namespaces == Namespaces::kOwn;
  constexpr unsigned long kFlags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | SIGCHLD;
  const pid_t child = own ? static_cast<pid_t>(syscall(SYS_clone, kFlags, nullptr, nullptr, nullptr, nullptr)) : fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!own && getppid() != parent) _exit(1);
  if (const char* const refused = own ? Furnish(folder, uid, gid) : nullptr; refused != nullptr) {
    const std::string said = std::string("the kernel refuses ") + refused + ": " + std::strerror(errno) + "\n";
    if (write(STDERR_FILENO, said.data(), said.size()) < 0) _exit(124);
    _exit(125);
  }
  return 0;
}

// Why there are no such processes on this machine; empty: there are.
inline std::string WhyNoNamespaces() {
  const pid_t child = ForkInto(Namespaces::kOwn, "/dev/shm");
  if (child == 0) _exit(0);
  if (child < 0) return std::string("this machine gives users no namespaces of their own: ") + std::strerror(errno);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0
             ? ""
             : "this machine does not let namespaces be furnished as a container's: its standard error says why";
}

}  // namespace headrace::testing
