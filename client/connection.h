// One replica as the trainer sees it: its ring, and the loader behind it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/loader_socket.h"
#include "common/ring/reader.h"

namespace headrace::client {

struct ConnectPolicy {
  std::string directory;
  int64_t timeout_ms = 0;         // for the loader to start
  int64_t loader_timeout_ms = 0;  // for the loader to come back
  std::function<bool()> interrupted;
};

// What an element's component means for a batch, worked out once.
struct Component {
  TensorSpec spec;
  int64_t value_bytes = 0;  // of a string's value: 1
};

// Shared by iterators and by batches, which keep it (mapping and socket) until the last one is freed. next() of one
// thread at a time; Release from any.
class Connection {
 public:
  static Result<std::shared_ptr<Connection>> Open(const ConnectPolicy& policy, int replica);

  int replica() const { return replica_; }
  const ring::HandshakeReply& reply() const { return reply_; }
  const std::vector<Component>& components() const { return components_; }

  // The epoch that the next iterator reads, and its start, which gives the iterator's number: an epoch can be started
  // twice.
  uint64_t NextEpoch() const { return reader_->next_epoch(); }
  uint64_t StartIteration(uint64_t epoch) {
    newest_epoch_ = reader_->StartIteration(epoch);
    return ++newest_iterator_;
  }
  uint64_t StartIterationAt(const ring::Position& start) {
    newest_epoch_ = start.epoch;
    reader_->StartIterationAt(start);
    return ++newest_iterator_;
  }
  // Of the shuffles without a seed of their own, in the order that is read now.
  uint64_t seed() const { return reader_->seed() != 0 ? reader_->seed() : reply_.run_seed; }
  // RingReader::Next, which also notices that the loader has gone and waits for it to come back. Errors: those of
  // RingReader::Next; Unavailable if the loader stays away; InvalidArgument if a newer iterator ended this one.
  Result<ring::RingReader::Outcome> Next(uint64_t iterator, int64_t timeout_ms, ring::SlotView* view);
  void Release(const ring::SlotView& view) { reader_->Release(view); }

 private:
  Connection(const ConnectPolicy& policy, int replica);
  Status CheckLoader();

  const ConnectPolicy policy_;
  const int replica_;
  LoaderSocket socket_;
  ring::HandshakeReply reply_;
  std::vector<Component> components_;
  std::unique_ptr<ring::RingReader> reader_;
  uint64_t ring_device_ = 0, ring_inode_ = 0;  // tell whether a loader that came back serves the same ring
  uint64_t newest_epoch_ = 0;
  uint64_t newest_iterator_ = 0;
  uint64_t gone_since_ms_ = 0;  // 0: the loader is there
};

// Asks the loader what it serves, attaching to nothing; waits for it to start.
Result<ring::HandshakeReply> AskLoader(const ConnectPolicy& policy);

}  // namespace headrace::client
