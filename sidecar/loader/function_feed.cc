#include "sidecar/loader/function_feed.h"

#include <algorithm>
#include <bit>

#include "sidecar/distribute/deal.h"

namespace headrace::side {
namespace {

// A slot where nothing is known of the elements' size.
constexpr uint64_t kLeastSlotBytes = uint64_t{1} << 20;

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::string text = "(";
  for (size_t d = 0; d < shape.size(); ++d) {
    text += (d > 0 ? ", " : "") + (shape[d] == kUnknownDim ? "None" : std::to_string(shape[d]));
  }
  return text + (shape.size() == 1 ? ",)" : ")");
}

std::string TypeText(const TensorSpec& tensor) {
  return std::string(DTypeName(tensor.dtype)) + " of shape " + ShapeText(tensor.shape);
}

bool Fits(const TensorSpec& tensor, const TensorSpec& declared) {
  return tensor.dtype == declared.dtype &&
         std::equal(tensor.shape.begin(), tensor.shape.end(), declared.shape.begin(), declared.shape.end(),
                    [](int64_t dim, int64_t wanted) { return wanted == kUnknownDim || dim == wanted; });
}

// The bytes of the largest element of these types; nothing where a dimension can vary.
std::optional<uint64_t> StaticBytes(const std::vector<TensorSpec>& components) {
  uint64_t end = 0;
  for (const TensorSpec& component : components) {
    uint64_t bytes = DTypeSize(component.dtype);
    for (const int64_t dim : component.shape) {
      if (dim == kUnknownDim) return {};
      bytes *= static_cast<uint64_t>(dim);
    }
    end = AlignTensor(end + bytes);
  }
  return end;
}

}  // namespace

class FunctionFeed::Epoch : public FeedEpoch {
 public:
  Epoch(FunctionFeed& feed, uint64_t step) : feed_(feed), step_(static_cast<int64_t>(step)) {}

  Result<Next> Advance(Delivery* delivery) override {
    const int64_t replicas = feed_.topology_.replicas_per_worker;
    if (!element_ && !ended_ && feed_.first_) {
      element_ = *std::exchange(feed_.first_, std::nullopt);
      ended_ = !element_;
    } else if (!ended_) {
      ASSIGN_OR_RETURN(element_, feed_.Advance());
      ended_ = !element_;
    }
    // A last, incomplete step is filled up with batches of size 0.
    if (ended_ && replica_ == 0) return Next::kEnd;
    const int64_t rows = !element_ ? 0 : element_->tensors[0].shape.empty() ? 1 : element_->tensors[0].shape[0];
    *delivery = {step_, replica_, rows, rows, ended_, 0};
    replica_ = (replica_ + 1) % replicas;
    if (replica_ == 0) ++step_;
    return Next::kDelivery;
  }

  // The function writes all of it: there are no parts.
  Result<size_t> Begin(const Delivery& delivery, Place* place) override {
    if (!element_) {
      WriteEmpty(feed_.element_spec_, place->slot, &place->extents);
      return size_t{0};
    }
    const uint64_t bytes = Extents(*element_, &place->extents);
    if (bytes > place->slot_bytes) {
      return feed_.Failed(Exhausted("an element of " + std::to_string(bytes) + " bytes does not fit a slot of " +
                                    std::to_string(place->slot_bytes) +
                                    ": set spec.source.function.maxElementBytes to the largest element's"));
    }
    const ring::RingWriter& ring = *feed_.rings_[static_cast<size_t>(delivery.replica)];
    const uint64_t begin = static_cast<uint64_t>(place->slot - reinterpret_cast<const uint8_t*>(&ring.header()));
    ring::WriteElement write{delivery.replica, {}};
    for (const ring::ComponentExtent& extent : place->extents) write.offsets.push_back(begin + extent.offset);
    const uint64_t asked = ring::MonotonicNs();
    const auto written = feed_.peer_->Ask<ring::ElementWritten>(std::move(write));
    feed_.read_clock_.AddBlockedOnInput(ring::MonotonicNs() - asked);
    if (!written.ok()) return feed_.Failed(written.status());
    return size_t{0};
  }
  Status WritePart(const Delivery&, size_t, size_t, Place*) override { return {}; }
  Status End(Delivery*, Place*) override { return {}; }

 private:
  FunctionFeed& feed_;
  int64_t step_;
  int64_t replica_ = 0;  // of the next delivery
  std::optional<ring::Element> element_;
  bool ended_ = false;
};

Result<std::unique_ptr<FunctionFeed>> FunctionFeed::Create(Plan plan, const Topology& topology,
                                                           std::unique_ptr<FunctionPeer> peer) {
  RETURN_IF_ERROR(CheckTopology(plan, topology));
  const Topology sharing = SharingTopology(plan, topology);
  std::unique_ptr<FunctionFeed> feed(new FunctionFeed(std::move(plan), topology, sharing, std::move(peer)));
  ASSIGN_OR_RETURN(ring::EpochStarted started, feed->Begin(0));
  feed->cardinality_ = started.cardinality;
  feed->declared_ = std::move(started.element_spec);
  ASSIGN_OR_RETURN(std::optional<ring::Element> first, feed->Advance());
  if (feed->declared_.empty()) {
    if (!first) {
      return feed->Failed(
          InvalidArgument("it yielded no element, so that nothing tells the types: declare element_spec"));
    }
    feed->declared_ = first->tensors;
    for (TensorSpec& component : feed->declared_) {
      if (!component.shape.empty()) component.shape[0] = kUnknownDim;
    }
  }
  if (first) RETURN_IF_ERROR(feed->CheckElement(*first));
  feed->SetElementSpec(feed->declared_);

  const auto& function = std::get<FunctionSource>(feed->plan_.spec.source);
  std::vector<ring::ComponentExtent> extents;
  if (function.max_element_bytes) {
    // Components are aligned: room for that beside the bytes themselves.
    feed->max_bytes_ = static_cast<uint64_t>(*function.max_element_bytes) + feed->declared_.size() * ring::kTensorAlign;
  } else if (const auto bytes = StaticBytes(feed->declared_)) {
    feed->max_bytes_ = *bytes;
  } else {
    // As large as the first, as a rule; up to twice that for elements of varying length.
    feed->max_bytes_ = std::max(kLeastSlotBytes, std::bit_ceil(first ? Extents(*first, &extents) : uint64_t{1}));
  }
  feed->first_ = std::move(first);
  return feed;
}

void FunctionFeed::SetElementSpec(const std::vector<TensorSpec>& components) {
  element_spec_ = components;
  const bool stays_static =
      sharing_.num_workers == 1 || sharing_.replicas_in_sync() == 1 || cardinality_ == kInfiniteCardinality;
  for (TensorSpec& component : element_spec_) {
    if (!component.shape.empty() && !stays_static) component.shape[0] = kUnknownDim;
  }
}

bool FunctionFeed::holds_steps() const { return MayDropLastStep(sharing_, declared_); }

Status FunctionFeed::LendRings(const std::vector<std::unique_ptr<ring::RingWriter>>& rings) {
  for (size_t replica = 0; replica < rings.size(); ++replica) {
    const Status lent = peer_->LendRing(static_cast<int64_t>(replica), rings[replica]->fd());
    if (!lent.ok()) return Failed(lent);
    rings_.push_back(rings[replica].get());
  }
  return {};
}

Result<std::unique_ptr<FeedEpoch>> FunctionFeed::Start(const ring::Position& start) {
  const bool begun = first_.has_value() && start.epoch == 0 && start.step == 0;
  if (!begun) {
    first_.reset();
    RETURN_IF_ERROR(Begin(start.epoch));
    // A function has no way to seek: what lies before is yielded and dropped.
    for (int64_t left = static_cast<int64_t>(start.step) * topology_.replicas_per_worker; left > 0; --left) {
      ASSIGN_OR_RETURN(const auto dropped, Advance());
      if (!dropped) break;
    }
  }
  return std::unique_ptr<FeedEpoch>(std::make_unique<Epoch>(*this, start.step));
}

Result<ring::EpochStarted> FunctionFeed::Begin(uint64_t epoch) {
  epoch_ = epoch;
  elements_ = 0;
  auto started = peer_->Ask<ring::EpochStarted>(ring::StartEpoch{sharing_, epoch});
  if (!started.ok()) return Failed(started.status());
  return started;
}

Result<std::optional<ring::Element>> FunctionFeed::Advance() {
  const uint64_t asked = ring::MonotonicNs();
  const auto answer = peer_->AskAny(ring::NextElement{});
  read_clock_.AddBlockedOnInput(ring::MonotonicNs() - asked);
  if (!answer.ok()) return Failed(answer.status());
  if (std::holds_alternative<ring::EndOfElements>(*answer)) return std::optional<ring::Element>();
  const auto* element = std::get_if<ring::Element>(&*answer);
  if (element == nullptr) return Failed(Internal("it answered out of turn"));
  if (!declared_.empty()) RETURN_IF_ERROR(CheckElement(*element));
  ++elements_;
  return std::optional<ring::Element>(*element);
}

Status FunctionFeed::CheckElement(const ring::Element& element) const {
  const auto wrong = [this](const std::string& what) {
    return Failed(InvalidArgument(what + ": declare element_spec, with None where a dimension can vary, or mend what "
                                         "it yields"));
  };
  if (element.tensors.size() != declared_.size()) {
    return wrong("the element has " + std::to_string(element.tensors.size()) + " components and should have " +
                 std::to_string(declared_.size()));
  }
  for (size_t c = 0; c < declared_.size(); ++c) {
    if (element.tensors[c].name != declared_[c].name) {
      return wrong("component " + std::to_string(c) + " is \"" + element.tensors[c].name + "\" and should be \"" +
                   declared_[c].name + "\"");
    }
    if (!Fits(element.tensors[c], declared_[c])) {
      return wrong("component \"" + declared_[c].name + "\" is " + TypeText(element.tensors[c]) + " and should be " +
                   TypeText(declared_[c]));
    }
  }
  return {};
}

Status FunctionFeed::Failed(const Status& status) const {
  if (status.code() == Code::kCancelled) return status;
  return status.WithContext("spec.source.function: worker " + std::to_string(topology_.worker_index) + ", epoch " +
                            std::to_string(epoch_) + ", element " + std::to_string(elements_));
}

uint64_t FunctionFeed::Extents(const ring::Element& element, std::vector<ring::ComponentExtent>* extents) {
  extents->clear();
  uint64_t begin = 0;
  for (const TensorSpec& tensor : element.tensors) {
    ring::ComponentExtent& extent =
        extents->emplace_back(ring::ComponentExtent{begin, DTypeSize(tensor.dtype), tensor.shape.size(), {}});
    for (size_t d = 0; d < tensor.shape.size(); ++d) {
      extent.dims[d] = tensor.shape[d];
      extent.bytes *= static_cast<uint64_t>(tensor.shape[d]);
    }
    begin = AlignTensor(begin + extent.bytes);
  }
  return begin;
}

}  // namespace headrace::side
