#include "sidecar/source/tar.h"

#include <algorithm>
#include <string>

#include "sidecar/decode/tar_member.h"

namespace headrace::side {
namespace {

constexpr size_t kMaxSampleBytes = size_t{1} << 30;

class TarFramer : public Framer {
 public:
  // Where a sample ends is seen by the member after it.
  Outcome Frame(BytesBlock* block, size_t size, bool last) override {
    Outcome outcome = FrameMembers(block, size, last);
    if (last) state_ = State::kMembers;  // what is framed next is from elsewhere
    return outcome;
  }

 private:
  enum class State {
    kMembers,
    kAfterEnd,  // of an archive: what follows is padding, or another archive
    kIgnoring,  // padding that is not of zeros
  };

  Outcome FrameMembers(BytesBlock* block, size_t size, bool last) {
    const std::span<const uint8_t> bytes(block->data(), size);
    if (state_ == State::kIgnoring) return {size, {}, 0};
    size_t begin = 0;  // of the sample
    size_t at = 0;     // of the member
    key_.clear();
    while (at < size) {
      if (state_ == State::kAfterEnd && !PassPadding(bytes, last, &at)) return {at, {}, 0};
      if (state_ == State::kAfterEnd) begin = at;
      const auto found = member_.Read(bytes, at);
      if (!found.ok()) return {begin, Corrupt(Member(*block, begin, at) + found.status().message()), 0};
      switch (*found) {
        case TarMember::Found::kIncomplete: return More(*block, size, last, begin, at);
        case TarMember::Found::kZeros:
          AddSample(block, begin, at);
          at += kTarBlockBytes;
          begin = at;
          state_ = State::kAfterEnd;
          continue;
        case TarMember::Found::kCut:
        case TarMember::Found::kMember: break;
      }
      state_ = State::kMembers;
      if (member_.is_file()) {
        const std::string_view key = SampleNameOf(member_.path()).key;
        if (!key.empty() && key != key_) {
          AddSample(block, begin, at);
          begin = at;
          key_ = key;
        }
      }
      if (*found == TarMember::Found::kCut) return More(*block, size, last, begin, at);
      at = member_.end();
      if (key_.empty()) begin = at;
    }
    if (!last) return {begin, {}, size - begin + kTarBlockBytes};
    AddSample(block, begin, at);
    return {size, {}, 0};
  }

  void AddSample(BytesBlock* block, size_t begin, size_t end) {
    if (!key_.empty()) block->Add(begin, end - begin);
    key_.clear();
  }

  // Writers fill archives up to their own size of block, mostly with zeros. Moves *at to another archive's first
  // header. false: there is none in these bytes, of which *at are done with.
  bool PassPadding(std::span<const uint8_t> bytes, bool last, size_t* at) {
    while (bytes.size() - *at >= kTarBlockBytes) {
      const uint8_t* const here = bytes.data() + *at;
      if (here[0] != 0 && IsTarHeader(here)) return true;
      if (!std::all_of(here, here + kTarBlockBytes, [](uint8_t byte) { return byte == 0; })) state_ = State::kIgnoring;
      if (state_ == State::kIgnoring) break;
      *at += kTarBlockBytes;
    }
    if (last || state_ == State::kIgnoring) *at = bytes.size();
    return false;
  }

  // Of the sample that begins at `begin`, the member at `at` is not all there.
  Outcome More(const BytesBlock& block, size_t size, bool last, size_t begin, size_t at) const {
    if (last) return {begin, Truncated(block, begin, at, member_.end() - size), 0};
    if (member_.end() - begin > kMaxSampleBytes) {
      return {begin, Corrupt("a sample of more than 1 GiB; write its files apart, or leave them out"), 0};
    }
    return {begin, {}, member_.end() - begin};
  }

  // Where the member is, if that is not where the sample begins.
  static std::string Member(const BytesBlock& block, size_t begin, size_t at) {
    return at == begin ? ""
                       : "in the sample that begins here, at byte " + std::to_string(block.origin.offset + at) + ": ";
  }
  static Status Truncated(const BytesBlock& block, size_t begin, size_t at, size_t missing) {
    return Corrupt(Member(block, begin, at) + "the file ends at least " + std::to_string(missing) +
                   " bytes before its member does: it was truncated; write it again or take it out of "
                   "spec.source.files.paths");
  }

  TarMember member_;
  std::string key_;  // of the sample; "": no member with a key was seen
  State state_ = State::kMembers;
};

}  // namespace

std::unique_ptr<Framer> MakeTarFramer() { return std::make_unique<TarFramer>(); }

}  // namespace headrace::side
