// Words of a message to a user.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headrace {

// The entry of `choices` that a typo of `word` most likely meant, or "" if none is near.
std::string NearestName(std::string_view word, const std::vector<std::string_view>& choices);
// "a", "b" or "c"
std::string QuotedList(const std::vector<std::string_view>& words);

}  // namespace headrace
