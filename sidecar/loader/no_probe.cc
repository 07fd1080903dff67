// Where the parts that need a GPU are built alone (probe.cc is the counterpart): nobody scrapes there.
#include "sidecar/loader/probe.h"

namespace headrace::side {

std::string Probe::Render() const { return {}; }

}  // namespace headrace::side
