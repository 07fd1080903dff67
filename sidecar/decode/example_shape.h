// How the values lie in the tf.train.Examples of a file: mostly in the same places in one as in another.
//
// What is between the values - tags, lengths, names - says all of a message's structure. Two messages that agree in it,
// byte for byte and place for place, have their values at the same places, so the second need not be parsed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace headrace::side {

class ExampleShape {
 public:
  enum class Kind { kBytes, kFloats, kInts };
  // Where the values of one feature lie: a bytes_list's only value, or a packed list.
  struct Values {
    size_t feature = 0;  // number of its name
    Kind kind = Kind::kBytes;
    size_t begin = 0;
    size_t size = 0;
  };

  // The shape of a message in which each feature stands once, with one list each. nullopt: it is not such a one, or is
  // no message at all. `names` are the features that are asked for; values of others may be anything.
  static std::optional<ExampleShape> Of(std::span<const uint8_t> message, const std::vector<std::string_view>& names);

  // Whether another message has this shape: its values are then where values() says, and it has no others.
  bool Fits(std::span<const uint8_t> message) const;
  const std::vector<Values>& values() const { return values_; }
  size_t size() const { return size_; }

 private:
  struct Part {
    size_t begin = 0;
    size_t size = 0;
  };
  size_t size_ = 0;             // of the message
  std::vector<Part> between_;   // what is not values
  std::vector<uint8_t> bytes_;  // ... and what stands there, one after another
  std::vector<Values> values_;  // in their order
};

}  // namespace headrace::side
