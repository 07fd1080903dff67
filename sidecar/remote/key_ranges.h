// Where to cut the rest of a long listing, so that its parts can be listed at the same time.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sidecar/remote/xml.h"

namespace headrace::side {

// Keys, in order, that cut what follows the last of `page` into ranges of likely several pages each; empty where the
// page gives no such hint. A guess at how keys go on: numbers, hexadecimal digits, or letters. `page` is in order, and
// its keys share their first `shared` bytes, as all that follow do; the keys returned are at most `end`, unless that is
// "". Any guess is right: each key that follows lies in exactly one range.
std::vector<std::string> KeyBoundaries(std::span<const ListedObject> page, size_t shared, const std::string& end);

}  // namespace headrace::side
