// Tar archives of samples, as WebDataset has them.
#pragma once

#include <memory>

#include "sidecar/source/block_reader.h"

namespace headrace::side {

// A record is a sample: the members one after another that SampleNameOf (tar_member.h) gives one key, as they lie in
// the archive, with those between and after them that belong to none.
std::unique_ptr<Framer> MakeTarFramer();

}  // namespace headrace::side
