// SIGTERM and SIGINT as something to wait for rather than a handler.
#pragma once

#include <signal.h>

namespace headrace::op {

// REQUIRES: made before the first thread starts, since threads inherit that the signals are blocked. Also ignores
// SIGPIPE: a peer that leaves is an error of its connection.
class Signals {
 public:
  Signals();
  // Blocks until one comes.
  void Wait() const;
  // True if one came within 100 ms.
  bool Came() const;
  // Makes Wait return, from any thread.
  static void Raise();

 private:
  sigset_t set_;
};

}  // namespace headrace::op
