#include "operator/signals.h"

#include <time.h>
#include <unistd.h>

namespace headrace::op {

Signals::Signals() {
  ::sigemptyset(&set_);
  ::sigaddset(&set_, SIGTERM);
  ::sigaddset(&set_, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

void Signals::Wait() const {
  int signal = 0;
  ::sigwait(&set_, &signal);
}

bool Signals::Came() const {
  const timespec moment{0, 100'000'000};
  return ::sigtimedwait(&set_, nullptr, &moment) > 0;
}

void Signals::Raise() { ::kill(::getpid(), SIGTERM); }

}  // namespace headrace::op
