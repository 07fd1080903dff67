// Ctrl-C and SIGTERM as a flag, so that loaders are stopped and run directories removed on the way out.
#pragma once

namespace headrace::cli {

// SIGINT, SIGTERM and SIGHUP set the flag from now on; the fourth ends the process at once.
void CatchInterrupts();
// The signal that came, or 0.
int Interrupted();

}  // namespace headrace::cli
