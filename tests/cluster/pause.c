// The sandbox process of a pod: waits, reaps orphans, ends at SIGTERM.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void Reap(int signal_number) {
  (void)signal_number;
  while (waitpid(-1, 0, WNOHANG) > 0) {
  }
}

static void End(int signal_number) {
  (void)signal_number;
  _exit(0);
}

int main(void) {
  signal(SIGCHLD, Reap);
  signal(SIGTERM, End);
  signal(SIGINT, End);
  for (;;) pause();
}
