#include "common/spec/nearest_name.h"

#include <algorithm>
#include <cctype>

namespace headrace {
namespace {

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = std::tolower(a[i - 1]) == std::tolower(b[j - 1]);
      const size_t best = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (same ? 0 : 1)});
      diagonal = row[j];
      row[j] = best;
    }
  }
  return row[b.size()];
}

}  // namespace

std::string NearestName(std::string_view word, const std::vector<std::string_view>& choices) {
  std::string_view best;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string_view choice : choices) {
    const size_t distance = EditDistance(word, choice);
    if (distance < best_distance) best = choice, best_distance = distance;
  }
  return std::string(best);
}

}  // namespace headrace
