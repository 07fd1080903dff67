// What the JSON of a review will cost as a tree, seen before there is one: any pod may reach the webhook.
#pragma once

#include <cstddef>
#include <string_view>

namespace headrace::op {

struct ReviewShape {
  size_t depth = 0;   // of lists and objects within one another, at the most
  size_t values = 0;  // at least as many as there are
};

// Of any bytes, JSON or not.
ReviewShape ShapeOf(std::string_view text);

}  // namespace headrace::op
