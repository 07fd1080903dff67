// A loader with nothing but its agreement, for tests that kill and stop processes.
//   collective_loader SOCKET WORKER WORKERS
// Prints "up", then does what lines of standard input say: "announce EPOCH STEPS ENDED", "any EPOCH STEP" (prints true,
// false or the error), "failure" (waits for one and prints it).
#include <chrono>
#include <iostream>
#include <sstream>
#include <thread>

#include "sidecar/collective/agreement.h"

using namespace headrace;
using namespace headrace::side;

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  AgreementOptions options;
  options.coordinator = std::string("unix:") + argv[1];
  options.topology = {std::stoll(argv[3]), std::stoll(argv[2]), 1};
  options.run_id = "run";
  options.plan_hash = "0123456789abcdef";
  options.host_name = std::string("pod-") + argv[2];
  const auto agreement = Agreement::Start(options);
  if (!agreement.ok()) {
    std::cout << agreement.status().ToString() << std::endl;
    return 1;
  }
  std::cout << "up" << std::endl;
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string command;
    uint64_t epoch = 0;
    int64_t step = 0;
    bool ended = false;
    words >> command >> epoch >> step >> ended;
    if (command == "announce") {
      (*agreement)->Announce(epoch, step, ended);
    } else if (command == "any") {
      const Result<bool> any = (*agreement)->AnyHasStep(epoch, step, [] { return false; });
      std::cout << (!any.ok() ? any.status().ToString() : *any ? "true" : "false") << std::endl;
    } else if (command == "failure") {
      while ((*agreement)->failure().ok()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      std::cout << (*agreement)->failure().ToString() << std::endl;
    }
  }
  return 0;
}
