#include "operator/admission/review_shape.h"

#include <algorithm>

namespace headrace::op {

ReviewShape ShapeOf(std::string_view text) {
  ReviewShape shape{0, 1};
  size_t open = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      shape.depth = std::max(shape.depth, ++open);
      ++shape.values;
    } else if (c == '}' || c == ']') {
      open -= open > 0 ? 1 : 0;
    } else if (c == ',') {
      ++shape.values;
    }
  }
  return shape;
}

}  // namespace headrace::op
