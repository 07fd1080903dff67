#include "sidecar/collective/wire.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace headrace::side::wire {
namespace {

std::vector<Message> Samples() {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  return {Hello{kVersion, 3, 2, true, "run", "0123456789abcdef", "host"},
          Hello{},
          Welcome{"coordinator"},
          Refusal{"because"},
          Final{7, kMost},
          Report{kNever, 12, true, false, 9},
          News{true, true, 4, 3, 8, "why"},
          News{},
          Known{1, 2, true},
          Failure{"Unavailable: worker 1 was lost"}};
}

TEST(WireTest, EveryMessageReadsBackWhole) {
  std::string stream;
  for (const Message& message : Samples()) stream += Encode(message);
  // However the bytes are cut, each message comes once all of its bytes are there.
  for (const size_t piece : {size_t{1}, size_t{3}, size_t{1000}}) {
    std::string inbox;
    std::vector<Message> read;
    for (size_t at = 0; at < stream.size(); at += piece) {
      inbox += stream.substr(at, piece);
      std::string_view rest = inbox;
      for (;;) {
        const auto message = Decode(&rest);
        ASSERT_TRUE(message.ok()) << message.status().ToString();
        if (!message->has_value()) break;
        read.push_back(**message);
      }
      inbox = std::string(rest);
    }
    EXPECT_EQ(read, Samples());
    EXPECT_TRUE(inbox.empty());
  }
}

TEST(WireTest, TheBytesOfAFrame) {
  // Length 18 (kind, epoch, steps, closed), kind 7, then little-endian fields.
  const std::string expected("\x12\0\0\0\x07\x02\x01\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x01", 22);
  EXPECT_EQ(Encode(Known{0x102, 5, true}), expected);
}

Status StatusOf(std::string bytes) {
  std::string_view rest = bytes;
  return Decode(&rest).status();
}

TEST(WireTest, WhatCannotBeAFrameIsCorrupt) {
  const std::string good = Encode(Known{1, 2, true});
  EXPECT_TRUE(StatusOf(good).ok());
  const auto with = [&](size_t at, char byte) {
    std::string bytes = good;
    bytes[at] = byte;
    return StatusOf(bytes).code();
  };
  EXPECT_EQ(with(2, 1), Code::kCorrupt) << "a frame of 64 KiB";
  EXPECT_EQ(StatusOf(std::string(4, '\0')).code(), Code::kCorrupt) << "an empty frame";
  EXPECT_EQ(with(4, 0), Code::kCorrupt) << "no such kind";
  EXPECT_EQ(with(4, 9), Code::kCorrupt) << "no such kind";
  EXPECT_EQ(with(20, '\x80'), Code::kCorrupt) << "a negative count";
  EXPECT_EQ(with(21, 2), Code::kCorrupt) << "a bool of 2";
  EXPECT_EQ(with(0, 17), Code::kCorrupt) << "cut off";
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\n\r\n").code(), Code::kCorrupt);
  std::string longer = good + "x";
  longer[0] = 19;
  EXPECT_EQ(StatusOf(longer).code(), Code::kCorrupt) << "bytes after the last field";
}

TEST(WireTest, AHelloOfAnotherVersionIsReadAsFarAsItsVersion) {
  Hello hello;
  hello.version = kVersion + 1;
  hello.run_id = "of another form, perhaps";
  const std::string bytes = Encode(hello);
  std::string_view rest = bytes;
  const auto message = Decode(&rest);
  ASSERT_TRUE(message.ok()) << message.status().ToString();
  EXPECT_EQ(std::get<Hello>(**message).version, kVersion + 1);
}

TEST(WireTest, LongTextsAreCut) {
  const std::string bytes = Encode(Refusal{std::string(100000, 'x')});
  std::string_view rest = bytes;
  const auto message = Decode(&rest);
  ASSERT_TRUE(message.ok()) << message.status().ToString();
  EXPECT_EQ(std::get<Refusal>(**message).why, std::string(kMaxTextBytes, 'x'));
}

}  // namespace
}  // namespace headrace::side::wire
