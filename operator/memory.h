// How the operator's process takes memory from the system: so that what a burst needed is given back after it.
#pragma once

namespace headrace::op {

// Few arenas, so that no thread keeps what it once needed to itself, and large blocks from the system and back to it
// each time. Before the first thread starts.
void BoundMemory();

}  // namespace headrace::op
