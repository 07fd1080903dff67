#include "sidecar/transform/filter.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/spec/components.h"
#include "common/spec/expression.h"
#include "sidecar/decode/values.h"

namespace headrace::side {
namespace {

using Op = Expression::Op;
using Type = Expression::Type;
using Node = Expression::Node;

// The values of an expression over one row of decoded records.
class Evaluation {
 public:
  // Both must outlive it.
  Evaluation(const Expression& expression, const DecodedRecords& decoded)
      : nodes_(expression.nodes()), decoded_(decoded) {}

  bool IsTrue(size_t row) const { return Integer(nodes_.size() - 1, row) != 0; }

 private:
  const Node& Left(const Node& node) const { return nodes_[static_cast<size_t>(node.left)]; }
  DType Loaded(const Node& node) const { return decoded_.components()[node.component].dtype; }
  const uint8_t* Place(const Node& node, size_t row) const {
    return decoded_.Row(node.component, row) + node.value * DTypeSize(Loaded(node));
  }

  // Of a node of type kBool or kInt. Overflow wraps.
  int64_t Integer(size_t index, size_t row) const {
    const Node& node = nodes_[index];
    const auto left = static_cast<size_t>(node.left);
    const auto right = static_cast<size_t>(node.right);
    const auto wrapped = [&](auto operation) {
      return static_cast<int64_t>(
          operation(static_cast<uint64_t>(Integer(left, row)), static_cast<uint64_t>(Integer(right, row))));
    };
    switch (node.op) {
      case Op::kConstant: return node.integer;
      case Op::kLoad:
        return WithType(Loaded(node), [&](auto type) {
          typename decltype(type)::type value;
          std::memcpy(&value, Place(node, row), sizeof value);
          return static_cast<int64_t>(value);
        });
      case Op::kNot: return Integer(left, row) == 0;
      case Op::kNegate: return static_cast<int64_t>(-static_cast<uint64_t>(Integer(left, row)));
      case Op::kAdd: return wrapped([](uint64_t a, uint64_t b) { return a + b; });
      case Op::kSubtract: return wrapped([](uint64_t a, uint64_t b) { return a - b; });
      case Op::kMultiply: return wrapped([](uint64_t a, uint64_t b) { return a * b; });
      case Op::kModulo: return Modulo(Integer(left, row), Integer(right, row));
      case Op::kAnd: return Integer(left, row) != 0 && Integer(right, row) != 0;
      case Op::kOr: return Integer(left, row) != 0 || Integer(right, row) != 0;
      default: break;
    }
    const Type type = Left(node).type;
    if (type == Type::kBool || type == Type::kInt) {
      return Compare(node.op, Integer(left, row), Integer(right, row));
    }
    return Compare(node.op, Number(left, row), Number(right, row));
  }

  // Of a node of a float type. Twice the digits are enough to round a float32 result as float32 arithmetic would.
  double Number(size_t index, size_t row) const {
    const Node& node = nodes_[index];
    const auto left = static_cast<size_t>(node.left);
    const auto right = static_cast<size_t>(node.right);
    double value = node.number;
    switch (node.op) {
      case Op::kLoad: value = LoadNumber(Loaded(node), Place(node, row)); break;
      case Op::kToFloat:
        value = Left(node).type == Type::kInt ? static_cast<double>(Integer(left, row)) : Number(left, row);
        break;
      case Op::kNegate: value = -Number(left, row); break;
      case Op::kAdd: value = Number(left, row) + Number(right, row); break;
      case Op::kSubtract: value = Number(left, row) - Number(right, row); break;
      case Op::kMultiply: value = Number(left, row) * Number(right, row); break;
      case Op::kDivide: value = Number(left, row) / Number(right, row); break;
      case Op::kModulo: value = Modulo(Number(left, row), Number(right, row)); break;
      default: break;
    }
    return node.type == Type::kFloat32 ? static_cast<double>(static_cast<float>(value)) : value;
  }

  static double LoadNumber(DType dtype, const uint8_t* place) {
    return WithStorage(dtype, [&](auto type) {
      typename decltype(type)::type value;
      std::memcpy(&value, place, sizeof value);
      return static_cast<double>(Load(value));
    });
  }

  static int64_t Modulo(int64_t a, int64_t b) {
    if (b == 0 || b == -1) return 0;  // -1 divides all, and the machine cannot divide the least integer by it
    const int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
  static double Modulo(double a, double b) {
    const double rest = std::fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }

  template <typename V>
  static bool Compare(Op op, V a, V b) {
    switch (op) {
      case Op::kLess: return a < b;
      case Op::kLessEqual: return a <= b;
      case Op::kGreater: return a > b;
      case Op::kGreaterEqual: return a >= b;
      case Op::kEqual: return a == b;
      default: return a != b;
    }
  }

  const std::vector<Node>& nodes_;
  const DecodedRecords& decoded_;
};

class FilterDataset : public Dataset<Record> {
 public:
  FilterDataset(DatasetPtr<Record> input, const Filter& filter, LookSite site)
      : input_(std::move(input)),
        site_(std::move(site)),
        // ParseInputSpec has parsed it.
        expression_(*Expression::Parse(filter.expression, RecordComponents(site_.spec, site_.stages, nullptr))) {}

  std::unique_ptr<Stream<Record>> Iterate(Pass pass) const override {
    return std::make_unique<FilterStream>(*this, input_->Iterate(pass));
  }

 private:
  class FilterStream : public Stream<Record> {
   public:
    FilterStream(const FilterDataset& filter, std::unique_ptr<Stream<Record>> input)
        : input_(std::move(input)), decoded_(filter.site_), evaluation_(filter.expression_, decoded_) {}

    Result<size_t> Read(std::span<Record> out) override {
      while (true) {
        // As many as are asked for: more could hold back what comes after an error.
        const std::span<Record> block = out.first(std::min(out.size(), decoded_.most()));
        ASSIGN_OR_RETURN(const size_t read, input_->Read(block));
        if (read == 0) return size_t{0};
        size_t kept = 0;
        RETURN_IF_ERROR(decoded_.ForEach(block.first(read), [&](size_t i, size_t row) -> Status {
          if (!evaluation_.IsTrue(row)) return {};
          if (kept != i) std::swap(out[kept], out[i]);
          ++kept;
          return {};
        }));
        if (kept > 0) return kept;
      }
    }

   private:
    std::unique_ptr<Stream<Record>> input_;
    DecodedRecords decoded_;
    Evaluation evaluation_;
  };

  const DatasetPtr<Record> input_;
  const LookSite site_;
  const Expression expression_;
};

}  // namespace

DatasetPtr<Record> MakeFilter(DatasetPtr<Record> input, const Filter& filter, LookSite site) {
  return std::make_unique<FilterDataset>(std::move(input), filter, std::move(site));
}

}  // namespace headrace::side
