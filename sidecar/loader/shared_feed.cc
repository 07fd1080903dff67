#include "sidecar/loader/shared_feed.h"

#include <algorithm>
#include <cstring>

#include "common/base/log.h"

namespace headrace::side {
namespace {

constexpr auto kGiveUpInterval = std::chrono::milliseconds(50);
// One that comes, and those that are written to their slots meanwhile.
constexpr size_t kBuffers = 4;
// What one thread copies at a time.
constexpr uint64_t kCopyBytes = 1 << 20;
// In FeedEpoch::Delivery::number: read by this worker itself. Else it is the buffer's.
constexpr uint64_t kOwn = uint64_t{1} << 63;

}  // namespace

class SharedFeed::Epoch : public FeedEpoch {
 public:
  Epoch(SharedFeed& feed, const ring::Position& start) : feed_(feed), seed_(start.seed) {
    const std::lock_guard lock(feed_.mutex_);
    feed_.want_ = {{start.epoch, start.step * feed_.replicas_, start.seed}, feed_.want_.number + 1};
    feed_.wanted_ = true;
    feed_.ended_ = false;
    next_ = feed_.want_.place.delivery;
    epoch_ = start.epoch;
    feed_.changed_.notify_all();
  }

  ~Epoch() override {
    const std::lock_guard lock(feed_.mutex_);
    feed_.wanted_ = false;
    for (const size_t buffer : feed_.arrived_) feed_.buffers_[buffer].taken = false;
    for (const size_t buffer : begun_) feed_.buffers_[buffer].taken = false;
    feed_.arrived_.clear();
    feed_.changed_.notify_all();
  }

  Result<Next> Advance(Delivery* delivery) override {
    if (own_ == nullptr) {
      std::unique_lock lock(feed_.mutex_);
      if (!feed_.arrived_.empty()) {
        begun_.push_back(feed_.arrived_.front());
        feed_.arrived_.pop_front();
        *delivery = feed_.buffers_[begun_.back()].delivery;
        ++next_;
        return Next::kDelivery;
      }
      RETURN_IF_ERROR(feed_.failure_);
      if (feed_.ended_) return Next::kEnd;
      if (!feed_.alone_) return Next::kNotYet;
      lock.unlock();
      RETURN_IF_ERROR(StartOwn());
    }
    while (true) {
      ASSIGN_OR_RETURN(const Next next, own_->Advance(delivery));
      if (next != Next::kDelivery) return next;
      if (to_pass_ == 0) break;
      --to_pass_;
    }
    delivery->number |= kOwn;
    return Next::kDelivery;
  }

  Result<size_t> Begin(const Delivery& delivery, Place* place) override {
    if (IsOwn(delivery)) return own_->Begin(Inner(delivery), place);
    const uint8_t* const data = DataOf(delivery);
    const size_t components = feed_.element_spec().size();
    place->extents.resize(components);
    std::memcpy(place->extents.data(), data + sizeof(PackedDelivery), components * sizeof(ring::ComponentExtent));
    if (HeadOf(data).gpu_images != feed_.gpu_images().size()) {
      return Unavailable(
          "spec.distribution.collective: worker 0's GPU does maps of images that this worker's cannot, or vice "
          "versa: give all workers GPUs and drivers alike, or write spec.delivery.memory: Auto");
    }
    const uint64_t bytes = HeadOf(data).slot_bytes;
    if (bytes > place->slot_bytes) return Internal("a batch of " + std::to_string(bytes) + " bytes outgrew its slot");
    return static_cast<size_t>((bytes + kCopyBytes - 1) / kCopyBytes);
  }

  Status WritePart(const Delivery& delivery, size_t part, size_t thread, Place* place) override {
    if (IsOwn(delivery)) return own_->WritePart(Inner(delivery), part, thread, place);
    const uint8_t* const data = DataOf(delivery);
    const uint64_t begin = part * kCopyBytes;
    const uint64_t bytes = std::min(kCopyBytes, HeadOf(data).slot_bytes - begin);
    std::memcpy(place->slot + begin, data + PackedDelivery::HeadBytes(feed_.element_spec().size()) + begin, bytes);
    return {};
  }

  Status End(Delivery* delivery, Place* place) override {
    if (IsOwn(*delivery)) {
      Delivery inner = Inner(*delivery);
      RETURN_IF_ERROR(own_->End(&inner, place));
      delivery->rows = inner.rows;
      delivery->records = inner.records;
      return {};
    }
    const std::lock_guard lock(feed_.mutex_);
    feed_.buffers_[delivery->number].taken = false;
    begun_.pop_front();  // they end in order
    feed_.changed_.notify_all();
    return {};
  }

 private:
  static bool IsOwn(const Delivery& delivery) { return (delivery.number & kOwn) != 0; }
  static Delivery Inner(Delivery delivery) {
    delivery.number &= ~kOwn;
    return delivery;
  }
  const uint8_t* DataOf(const Delivery& delivery) const { return feed_.buffers_[delivery.number].parts[0].data; }
  static PackedDelivery HeadOf(const uint8_t* data) {
    PackedDelivery head;
    std::memcpy(&head, data, sizeof head);
    return head;
  }

  // Goes on with the delivery that has not come; epochs start with steps.
  Status StartOwn() {
    ASSIGN_OR_RETURN(own_, feed_.own_.Start({epoch_, next_ / feed_.replicas_, seed_}));
    to_pass_ = next_ % feed_.replicas_;
    return {};
  }

  SharedFeed& feed_;
  const uint64_t seed_;
  uint64_t epoch_ = 0;
  uint64_t next_ = 0;         // delivery
  std::deque<size_t> begun_;  // buffers that the engine has
  std::unique_ptr<FeedEpoch> own_;
  uint64_t to_pass_ = 0;
};

SharedFeed::SharedFeed(SharedFeedOptions options)
    : options_(std::move(options)),
      own_(*options_.own),
      rounds_(options_.agreement->rounds()),
      worker_(own_.topology().worker_index),
      workers_(own_.topology().num_workers),
      replicas_(static_cast<uint64_t>(own_.topology().replicas_per_worker)),
      thread_([this] { Run(); }) {}

SharedFeed::~SharedFeed() {
  Stop();
  thread_.join();
}

void SharedFeed::Stop() {
  stop_ = true;
  own_.Stop();
  if (options_.reader != nullptr) options_.reader->Stop();
  changed_.notify_all();
}

Result<std::unique_ptr<FeedEpoch>> SharedFeed::Start(const ring::Position& start) {
  return std::unique_ptr<FeedEpoch>(std::make_unique<Epoch>(*this, start));
}

uint64_t SharedFeed::bytes_read() const {
  return own_.bytes_read() + (options_.reader == nullptr ? 0 : options_.reader->feed().bytes_read());
}

uint64_t SharedFeed::skipped_records() const {
  return own_.skipped_records() + (options_.reader == nullptr ? 0 : options_.reader->feed().skipped_records());
}

StageTimes SharedFeed::read_times() const {
  return options_.reader == nullptr ? own_.read_times() : options_.reader->feed().read_times();
}

void SharedFeed::Run() {
  const Status error = RunExchange();
  const Status run = options_.agreement->failure();
  // Whose word it is the others know only if it says so.
  const std::string name = "worker " + std::to_string(worker_);
  rounds_.End(stop_ ? Cancelled(name + "'s loader was stopped") : run.ok() ? error.WithContext(name) : run);
  const Status why = rounds_.why_ended();
  const bool alone = options_.falls_back || why.code() == Code::kCancelled;
  if (!stop_) {
    log::Warning("the exchange of batches between loaders is over",
                 {{"reason", why.ToString()}, {"then", alone ? "each worker reads by itself" : "the input fails"}});
  }
  const std::lock_guard lock(mutex_);
  alone_ = alone;
  if (!alone) {
    failure_ = why.WithContext(
        "spec.distribution.collective: the exchange of batches between the loaders is over, and onError is Fail");
  }
  options_.signal->Raise();
}

std::function<bool()> SharedFeed::GiveUp() const {
  return [this] { return stop_ || rounds_.ended() || !options_.agreement->failure().ok(); };
}

Status SharedFeed::RunExchange() {
  ASSIGN_OR_RETURN(exchange_, options_.open());
  RETURN_IF_ERROR(Join());
  RETURN_IF_ERROR(Allocate());
  log::Info("batches come by exchange", {{"from", "worker 0"}, {"each worker", options_.scatters ? "its own" : "all"}});
  for (uint64_t round = 1;; ++round) {
    Want want;
    size_t buffer = 0;
    RETURN_IF_ERROR(AwaitRoom(&want, &buffer));
    RETURN_IF_ERROR(worker_ == 0 ? Give(round, want, buffer) : Take(round, want, buffer));
  }
}

Status SharedFeed::Join() {
  std::string id;
  if (worker_ == 0) {
    RETURN_IF_ERROR(rounds_.AwaitAll(0, GiveUp()));
    ASSIGN_OR_RETURN(id, exchange_->NewId());
    rounds_.SayGo(std::vector<wire::Go>(static_cast<size_t>(workers_ - 1), wire::Go{.id = id}));
  } else {
    ASSIGN_OR_RETURN(const wire::Go go, rounds_.AwaitGo({}, GiveUp()));
    id = go.id;
  }
  return exchange_->Join(id, GiveUp());
}

Status SharedFeed::Allocate() {
  const size_t bytes = PackedDelivery::HeadBytes(element_spec().size()) + AlignTensor(max_bytes());
  const size_t parts = worker_ == 0 && options_.scatters ? static_cast<size_t>(workers_) : 1;
  const std::lock_guard lock(mutex_);
  buffers_.resize(kBuffers);
  for (Buffer& buffer : buffers_) {
    ASSIGN_OR_RETURN(uint8_t* const memory, exchange_->Allocate(parts * bytes));
    for (size_t part = 0; part < parts; ++part) buffer.parts.push_back({memory + part * bytes, bytes});
  }
  return {};
}

Status SharedFeed::AwaitRoom(Want* want, size_t* buffer) {
  const std::function<bool()> give_up = GiveUp();
  std::unique_lock lock(mutex_);
  while (true) {
    const auto free = std::find_if(buffers_.begin(), buffers_.end(), [](const Buffer& b) { return !b.taken; });
    if (wanted_ && !ended_ && free != buffers_.end()) {
      *want = want_;
      *buffer = static_cast<size_t>(free - buffers_.begin());
      return {};
    }
    lock.unlock();
    if (give_up()) return Cancelled("asked to stop");
    lock.lock();
    changed_.wait_for(lock, kGiveUpInterval);
  }
}

Status SharedFeed::Give(uint64_t round, const Want& want, size_t buffer) {
  std::vector<Exchange::Part> parts = buffers_[buffer].parts;
  // Ahead of the others, who mostly want the same.
  SharePlace place = want.place;
  ASSIGN_OR_RETURN(bool more, options_.reader->Read(place, parts));
  ASSIGN_OR_RETURN(const std::vector<wire::Ready> others, rounds_.AwaitAll(round, GiveUp()));
  // Those who are behind, or have gone back, get what they lack first; those who are ahead wait for them.
  for (const wire::Ready& other : others) {
    if (std::pair(other.epoch, other.delivery) < std::pair(place.epoch, place.delivery)) {
      place = {other.epoch, other.delivery, other.seed};
    }
  }
  const auto differs = [&](const wire::Ready& other) { return other.epoch == place.epoch && other.seed != place.seed; };
  if (std::any_of(others.begin(), others.end(), differs) ||
      (want.place.epoch == place.epoch && want.place.seed != place.seed)) {
    return Unavailable("the workers want epoch " + std::to_string(place.epoch) +
                       " with different seeds: their trainers have loaded different states");
  }
  if (place != want.place) {
    parts = buffers_[buffer].parts;
    ASSIGN_OR_RETURN(more, options_.reader->Read(place, parts));
  }
  std::vector<wire::Go> go(others.size(), {round, place.epoch, place.delivery, parts[0].bytes, !more, ""});
  for (size_t i = 0; options_.scatters && i < go.size(); ++i) go[i].bytes = parts[i + 1].bytes;
  rounds_.SayGo(std::move(go));
  if (more) {
    RETURN_IF_ERROR(options_.scatters ? exchange_->Scatter(parts, GiveUp()) : exchange_->Broadcast(parts[0], GiveUp()));
  }
  return Arrive(want, place, !more, buffer);
}

Status SharedFeed::Take(uint64_t round, const Want& want, size_t buffer) {
  Exchange::Part part = buffers_[buffer].parts[0];
  const wire::Ready ready{round, want.place.epoch, want.place.delivery, want.place.seed};
  ASSIGN_OR_RETURN(const wire::Go go, rounds_.AwaitGo(ready, GiveUp()));
  if (!go.ended) {
    if (go.bytes > part.bytes) return Internal("a delivery of " + std::to_string(go.bytes) + " bytes has no room");
    part.bytes = go.bytes;
    RETURN_IF_ERROR(options_.scatters ? exchange_->Receive(part, GiveUp()) : exchange_->Broadcast(part, GiveUp()));
  }
  return Arrive(want, {go.epoch, go.delivery, want.place.seed}, go.ended, buffer);
}

Status SharedFeed::Arrive(const Want& want, const SharePlace& place, bool ended, size_t buffer) {
  const std::lock_guard lock(mutex_);
  const bool is_wanted = wanted_ && want_.number == want.number && place.epoch == want.place.epoch;
  if (!is_wanted || (ended ? place.delivery > want.place.delivery : place.delivery != want.place.delivery)) return {};
  if (ended) {
    ended_ = true;
  } else {
    Buffer& arrived = buffers_[buffer];
    PackedDelivery head;
    std::memcpy(&head, arrived.parts[0].data, sizeof head);
    const auto replicas = static_cast<int64_t>(replicas_);
    const auto delivery = static_cast<int64_t>(place.delivery);
    arrived.delivery = {.step = delivery / replicas,
                        .replica = delivery % replicas,
                        .rows = head.rows,
                        .records = head.records,
                        .number = buffer};
    arrived.taken = true;
    arrived_.push_back(buffer);
    ++want_.place.delivery;
  }
  options_.signal->Raise();
  return {};
}

}  // namespace headrace::side
