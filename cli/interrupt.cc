#include "cli/interrupt.h"

#include <signal.h>

#include <initializer_list>

namespace headrace::cli {
namespace {

volatile sig_atomic_t interrupted = 0;
volatile sig_atomic_t count = 0;

void OnSignal(int number) {
  interrupted = number;
  count = count + 1;
  // Not the second: `timeout` and some terminals send one to us and one to our process group.
  if (count >= 3) signal(number, SIG_DFL);
}

}  // namespace

void CatchInterrupts() {
  for (int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action = {};
    action.sa_handler = OnSignal;
    sigaction(number, &action, nullptr);
  }
}

int Interrupted() { return interrupted; }

}  // namespace headrace::cli
