// Where the parts that need a GPU are built alone (agreement.cc is the counterpart): there is no Agreement to call
// anything of, since Start makes none.
#include "sidecar/collective/agreement.h"

namespace headrace::side {

struct Agreement::State {
  Rounds rounds{0, nullptr};
};

Result<std::unique_ptr<Agreement>> Agreement::Start(AgreementOptions options) {
  return Unavailable("this build has no agreement between loaders, for which the other " +
                     std::to_string(options.topology.num_workers - 1) +
                     " would be met: it is of the parts that need a GPU alone; run one worker, or leave "
                     "HEADRACE_COORDINATOR out");
}
Agreement::~Agreement() = default;
void Agreement::Announce(uint64_t, int64_t, bool) {}
Result<bool> Agreement::AnyHasStep(uint64_t, int64_t, const std::function<bool()>&) { return false; }
void Agreement::Fail(const Status&) {}
Status Agreement::failure() const { return {}; }
Rounds& Agreement::rounds() { return state_->rounds; }

}  // namespace headrace::side
