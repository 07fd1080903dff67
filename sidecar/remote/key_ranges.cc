#include "sidecar/remote/key_ranges.h"

#include <algorithm>
#include <string_view>

namespace headrace::side {
namespace {

constexpr std::string_view kAlphabets[] = {"0123456789", "0123456789abcdef", "0123456789ABCDEF",
                                           "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"};
constexpr size_t kMaxBoundaries = 256;

// The smallest one that holds the letters and digits in which the page's keys differ.
std::string_view AlphabetOf(std::span<const ListedObject> page, size_t begin) {
  std::string seen;
  for (const ListedObject& object : page) {
    const std::string_view word = std::string_view(object.key).substr(begin, 4);
    seen += word.substr(0, word.find_first_not_of(kAlphabets[3]));
  }
  for (const std::string_view alphabet : kAlphabets) {
    if (seen.find_first_not_of(alphabet) == std::string::npos) return alphabet;
  }
  return kAlphabets[3];
}

}  // namespace

std::vector<std::string> KeyBoundaries(std::span<const ListedObject> page, size_t shared, const std::string& end) {
  if (page.size() < 2) return {};
  const std::string& first = page.front().key;
  const std::string& last = page.back().key;
  const auto differ = std::mismatch(first.begin(), first.end(), last.begin(), last.end());
  if (differ.first == first.end() || differ.second == last.end()) return {};
  const auto place = static_cast<size_t>(differ.second - last.begin());
  const std::string_view alphabet = AlphabetOf(page, place);
  const size_t from = alphabet.find(first[place]);
  const size_t to = alphabet.find(last[place]);
  if (from == std::string_view::npos || to == std::string_view::npos || place < shared) return {};

  std::vector<std::string> boundaries;
  // How many keys there likely are for each value of the character at `i`.
  double keys = static_cast<double>(page.size()) / static_cast<double>(to - from + 1);
  for (size_t i = place + 1; i-- > shared && boundaries.size() < kMaxBoundaries;) {
    const size_t at = alphabet.find(last[i]);
    if (at == std::string_view::npos) continue;
    if (keys >= 2.0 * static_cast<double>(page.size())) {
      for (size_t next = at + 1; next < alphabet.size(); ++next) {
        const std::string boundary = last.substr(0, i) + alphabet[next];
        if (end.empty() || boundary < end) boundaries.push_back(boundary);
      }
    }
    keys *= static_cast<double>(alphabet.size());
  }
  std::sort(boundaries.begin(), boundaries.end());
  return boundaries;
}

}  // namespace headrace::side
