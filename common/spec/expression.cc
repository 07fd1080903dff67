#include "common/spec/expression.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "common/base/words.h"

namespace headrace {
namespace {

using Op = Expression::Op;
using Type = Expression::Type;
using Node = Expression::Node;

constexpr int kMaxDepth = 64;  // of parentheses and unary operators

struct Binary {
  std::string_view text;
  int level;  // binds more tightly the larger
  Op op;
};
// A token that another one begins with comes after it.
constexpr std::array<Binary, 13> kBinaries = {{{"||", 1, Op::kOr},
                                               {"&&", 2, Op::kAnd},
                                               {"==", 3, Op::kEqual},
                                               {"!=", 3, Op::kNotEqual},
                                               {"<=", 4, Op::kLessEqual},
                                               {">=", 4, Op::kGreaterEqual},
                                               {"<", 4, Op::kLess},
                                               {">", 4, Op::kGreater},
                                               {"+", 5, Op::kAdd},
                                               {"-", 5, Op::kSubtract},
                                               {"*", 6, Op::kMultiply},
                                               {"/", 6, Op::kDivide},
                                               {"%", 6, Op::kModulo}}};

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWord(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || IsDigit(c); }

const char* TypeWords(Type type) {
  switch (type) {
    case Type::kBool: return "true or false";
    case Type::kInt: return "an integer";
    case Type::kFloat32:
    case Type::kFloat64: break;
  }
  return "a float";
}

class Parser {
 public:
  Parser(const std::string& text, const std::vector<TensorSpec>& components, std::vector<Node>* nodes)
      : text_(text), components_(components), nodes_(*nodes) {}

  Status Parse() {
    ASSIGN_OR_RETURN(const int result, ParseBinary(1));
    SkipSpaces();
    if (at_ < text_.size()) {
      const std::string remedy = text_[at_] == '=' || text_[at_] == '&' || text_[at_] == '|'
                                     ? "; comparisons are ==, != and so on, conditions are joined with && and ||"
                                     : "; an operator is expected here, or the end";
      return Error(at_, "\"" + Rest() + "\" is not understood" + remedy);
    }
    if (nodes_[Index(result)].type != Type::kBool) {
      return Error(0, std::string("the expression is ") + TypeWords(nodes_[Index(result)].type) +
                          ", and must be true or false; compare it with something");
    }
    return {};
  }

 private:
  static size_t Index(int node) { return static_cast<size_t>(node); }

  Status Error(size_t at, const std::string& message) const {
    return InvalidArgument("at column " + std::to_string(at + 1) + ": " + message);
  }

  // What stands at the current place, short.
  std::string Rest() const { return text_.substr(at_, 12) + (text_.size() - at_ > 12 ? "..." : ""); }

  void SkipSpaces() {
    while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
  }

  int Add(Node node) {
    nodes_.push_back(node);
    return static_cast<int>(nodes_.size()) - 1;
  }

  const Binary* PeekBinary() {
    SkipSpaces();
    for (const Binary& binary : kBinaries) {
      if (text_.compare(at_, binary.text.size(), binary.text) == 0) return &binary;
    }
    return nullptr;
  }

  Result<int> ParseBinary(int level) {
    ASSIGN_OR_RETURN(int left, ParseUnary());
    while (true) {
      const Binary* const binary = PeekBinary();
      if (binary == nullptr || binary->level < level) return left;
      const size_t at = at_;
      at_ += binary->text.size();
      ASSIGN_OR_RETURN(const int right, ParseBinary(binary->level + 1));
      ASSIGN_OR_RETURN(left, Join(*binary, at, left, right));
    }
  }

  Result<int> ParseUnary() {
    SkipSpaces();
    const size_t at = at_;
    if (at_ == text_.size()) return Error(at, "the expression ends where a value is expected");
    if (depth_ == kMaxDepth) return Error(at, "more than " + std::to_string(kMaxDepth) + " within one another");
    const char c = text_[at_];
    if (c != '!' && c != '-' && c != '(') return ParseValue();
    ++at_;
    ++depth_;
    Result<int> operand = c == '(' ? ParseBinary(1) : ParseUnary();
    --depth_;
    if (!operand.ok()) return operand;
    const Node node = nodes_[Index(*operand)];
    if (c == '(') {
      SkipSpaces();
      if (at_ == text_.size() || text_[at_] != ')') return Error(at, "this ( is not closed; a ) is missing");
      ++at_;
      return operand;
    }
    if ((c == '!') != (node.type == Type::kBool)) {
      return Error(at, std::string(1, c) + " does not go with " + TypeWords(node.type) +
                           (c == '!' ? "; write x == 0" : "; ! negates a condition"));
    }
    Node out{c == '!' ? Op::kNot : Op::kNegate, node.type, node.is_constant};
    out.left = *operand;
    return Add(out);
  }

  Result<int> ParseValue() {
    const char c = text_[at_];
    if (IsDigit(c) || c == '.') return ParseNumber();
    const size_t at = at_;
    std::string name;
    if (c == '`') {
      const size_t end = text_.find('`', at_ + 1);
      if (end == std::string::npos) return Error(at, "this ` is not closed; another ` ends the name");
      name = text_.substr(at_ + 1, end - at_ - 1);
      at_ = end + 1;
    } else {
      while (at_ < text_.size() && IsWord(text_[at_])) name += text_[at_++];
      if (name.empty()) return Error(at, "\"" + Rest() + "\" is not understood; a number or a component is expected");
      if (name == "true" || name == "false") {
        Node node{Op::kConstant, Type::kBool, true};
        node.integer = name == "true" ? 1 : 0;
        return Add(node);
      }
    }
    return ParseComponent(at, name);
  }

  Result<int> ParseNumber() {
    const size_t at = at_;
    while (at_ < text_.size() && (IsWord(text_[at_]) || text_[at_] == '.' ||
                                  ((text_[at_] == '-' || text_[at_] == '+') && (text_[at_ - 1] | 0x20) == 'e'))) {
      ++at_;
    }
    const char* const begin = text_.data() + at;
    const char* const end = text_.data() + at_;
    Node node{Op::kConstant, Type::kInt, true};
    std::from_chars_result read = std::from_chars(begin, end, node.integer);
    if (read.ec == std::errc() && read.ptr == end) return Add(node);
    node.type = Type::kFloat64;
    read = std::from_chars(begin, end, node.number);
    if (read.ec == std::errc() && read.ptr == end) return Add(node);
    return Error(at, "\"" + text_.substr(at, std::min<size_t>(at_ - at, 40)) +
                         "\" is no number; a name that begins so stands in `s");
  }

  Result<int> ParseComponent(size_t at, const std::string& name) {
    std::vector<std::string_view> names;
    for (const TensorSpec& component : components_) names.push_back(component.name);
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      const std::string nearest = NearestName(name, names);
      return Error(at, "there is no component \"" + name + "\" here; " +
                           (nearest.empty() ? "there is " + QuotedList(names) : "did you mean \"" + nearest + "\"?"));
    }
    Node node{Op::kLoad};
    node.component = static_cast<size_t>(found - names.begin());
    const TensorSpec& component = components_[node.component];
    switch (component.dtype) {
      case DType::kString:
        return Error(at, "\"" + name + "\" is a string; put a map {stringToNumber: ...} of it before the filter");
      case DType::kBool: node.type = Type::kBool; break;
      case DType::kFloat16:
      case DType::kBfloat16:
      case DType::kFloat32: node.type = Type::kFloat32; break;
      case DType::kFloat64: node.type = Type::kFloat64; break;
      case DType::kUint64:
        return Error(at,
                     "\"" + name + "\" is uint64, which is not compared; put a map {cast: int64} before the filter");
      default: node.type = Type::kInt;
    }
    size_t dimension = 0;
    for (SkipSpaces(); at_ < text_.size() && text_[at_] == '['; SkipSpaces(), ++dimension) {
      RETURN_IF_ERROR(ParseIndex(component, dimension, &node.value));
    }
    if (dimension == component.shape.size()) return Add(node);
    return Error(at, "\"" + name + "\" has " + std::to_string(component.shape.size()) + " dimensions and " +
                         std::to_string(dimension) + " indices; give one constant index for each, as in x[0]");
  }

  Status ParseIndex(const TensorSpec& component, size_t dimension, size_t* value) {
    const size_t at = at_++;
    SkipSpaces();
    int64_t index = -1;
    const char* const end = text_.data() + text_.size();
    const auto [stop, error] = std::from_chars(text_.data() + at_, end, index);
    at_ = static_cast<size_t>(stop - text_.data());
    SkipSpaces();
    if (error != std::errc() || at_ == text_.size() || text_[at_] != ']') {
      return Error(at, "an index is a whole number in [ and ], as in x[0]");
    }
    ++at_;
    if (dimension >= component.shape.size()) return {};  // too many: said with their number
    const int64_t size = component.shape[dimension];
    if (size == kUnknownDim) {
      return Error(at, "\"" + component.name + "\" is of variable length, which a filter cannot look into");
    }
    if (index < 0 || index >= size) {
      return Error(at, std::to_string(index) + " is outside dimension " + std::to_string(dimension) + " of \"" +
                           component.name + "\", which has 0 to " + std::to_string(size - 1));
    }
    *value = *value * static_cast<size_t>(size) + static_cast<size_t>(index);
    return {};
  }

  Result<int> Join(const Binary& binary, size_t at, int left, int right) {
    const bool logical = binary.op == Op::kAnd || binary.op == Op::kOr;
    const bool equality = binary.op == Op::kEqual || binary.op == Op::kNotEqual;
    const Type l = nodes_[Index(left)].type;
    const Type r = nodes_[Index(right)].type;
    Node node{binary.op};
    node.is_constant = nodes_[Index(left)].is_constant && nodes_[Index(right)].is_constant;
    const bool bools = l == Type::kBool && r == Type::kBool;
    const bool numbers = l != Type::kBool && r != Type::kBool;
    if (!(logical ? bools : numbers || (bools && equality))) {
      std::string remedy = "compare numbers first, as in a < 1 && b < 2";
      if (!logical) remedy = "join comparisons with &&, as in a < b && b < c; a bool is itself a condition";
      return Error(
          at, std::string(binary.text) + " stands between " + TypeWords(l) + " and " + TypeWords(r) + "; " + remedy);
    }
    node.type = Type::kBool;
    if (!bools) {
      const Type common = CommonType(binary.op, left, right);
      left = Converted(left, common);
      right = Converted(right, common);
      if (binary.level > 4) node.type = common;
    }
    node.left = left;
    node.right = right;
    return Add(node);
  }

  Type CommonType(Op op, int left, int right) const {
    const Node& l = nodes_[Index(left)];
    const Node& r = nodes_[Index(right)];
    if (l.type == Type::kInt && r.type == Type::kInt) return op == Op::kDivide ? Type::kFloat64 : Type::kInt;
    // A constant beside something that is none takes its float type.
    if (l.is_constant != r.is_constant) {
      const Type other = l.is_constant ? r.type : l.type;
      if (other != Type::kInt) return other;
    }
    return l.type == Type::kFloat32 && r.type == Type::kFloat32 ? Type::kFloat32 : Type::kFloat64;
  }

  int Converted(int node, Type type) {
    const Node from = nodes_[Index(node)];
    if (from.type == type) return node;
    Node out{Op::kToFloat, type, from.is_constant};
    out.left = node;
    return Add(out);
  }

  const std::string& text_;
  const std::vector<TensorSpec>& components_;
  std::vector<Node>& nodes_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Result<Expression> Expression::Parse(const std::string& text, const std::vector<TensorSpec>& components) {
  Expression expression;
  RETURN_IF_ERROR(Parser(text, components, &expression.nodes_).Parse());
  return expression;
}

}  // namespace headrace
