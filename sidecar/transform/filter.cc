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

constexpr size_t kBlockBytes = 256 << 10;
constexpr size_t kMaxBlockRecords = 256;

// The columns of a block of records, and the values of an expression over one row of them.
class Evaluation {
 public:
  Evaluation(const Expression& expression, const std::vector<TensorSpec>& components)
      : nodes_(expression.nodes()), components_(components) {
    size_t record_bytes = 1;
    for (const TensorSpec& component : components) {
      row_bytes_.push_back(RowBytes(component));
      record_bytes += row_bytes_.back();
    }
    records_ = std::clamp<size_t>(kBlockBytes / record_bytes, 1, kMaxBlockRecords);
    for (const size_t bytes : row_bytes_) columns_.emplace_back(bytes * records_);
    for (std::vector<uint8_t>& column : columns_) outs_.push_back(column.data());
  }

  size_t records() const { return records_; }  // the most in a block
  std::span<uint8_t* const> columns() { return outs_; }
  bool IsTrue(size_t row) const { return Integer(nodes_.size() - 1, row) != 0; }

 private:
  const Node& Left(const Node& node) const { return nodes_[static_cast<size_t>(node.left)]; }
  const uint8_t* Place(const Node& node, size_t row) const {
    return columns_[node.component].data() + row * row_bytes_[node.component] +
           node.value * DTypeSize(components_[node.component].dtype);
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
        return WithType(components_[node.component].dtype, [&](auto type) {
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
      case Op::kLoad: value = LoadNumber(components_[node.component].dtype, Place(node, row)); break;
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
  const std::vector<TensorSpec>& components_;
  std::vector<size_t> row_bytes_;
  size_t records_ = 1;
  std::vector<std::vector<uint8_t>> columns_;
  std::vector<uint8_t*> outs_;
};

class FilterDataset : public Dataset<Record> {
 public:
  FilterDataset(DatasetPtr<Record> input, const Filter& filter, const InputSpec& spec, size_t stages,
                MakeDecoder source_decoder, std::function<Status(const Status&)> take_error)
      : input_(std::move(input)),
        spec_(spec),
        stages_(stages),
        source_decoder_(std::move(source_decoder)),
        take_error_(std::move(take_error)),
        components_(RecordComponents(spec, stages, nullptr)),
        expression_(*Expression::Parse(filter.expression, components_)) {}  // ParseInputSpec has parsed it

  std::unique_ptr<Stream<Record>> Iterate(Pass pass) const override {
    return std::make_unique<FilterStream>(*this, input_->Iterate(pass));
  }

 private:
  class FilterStream : public Stream<Record> {
   public:
    FilterStream(const FilterDataset& filter, std::unique_ptr<Stream<Record>> input)
        : filter_(filter),
          input_(std::move(input)),
          decoder_(MakePipelineDecoder(filter.spec_, filter.stages_, filter.source_decoder_())),
          evaluation_(filter.expression_, filter.components_) {}

    Result<size_t> Read(std::span<Record> out) override {
      while (true) {
        // As many as are asked for: more could hold back what comes after an error.
        const std::span<Record> block = out.first(std::min(out.size(), evaluation_.records()));
        ASSIGN_OR_RETURN(const size_t read, input_->Read(block));
        if (read == 0) return size_t{0};
        const Status decoded = decoder_->Decode(block.first(read), evaluation_.columns());
        size_t kept = 0;
        for (size_t i = 0; i < read; ++i) {
          if (!decoded.ok()) {
            // One of the block is bad: each by itself then.
            const Status alone = decoder_->Decode(block.subspan(i, 1), evaluation_.columns());
            if (!alone.ok()) {
              RETURN_IF_ERROR(filter_.take_error_(alone));
              continue;
            }
          }
          if (!evaluation_.IsTrue(decoded.ok() ? i : 0)) continue;
          if (kept != i) std::swap(out[kept], out[i]);
          ++kept;
        }
        if (kept > 0) return kept;
      }
    }

   private:
    const FilterDataset& filter_;
    std::unique_ptr<Stream<Record>> input_;
    std::unique_ptr<Decoder> decoder_;
    Evaluation evaluation_;
  };

  const DatasetPtr<Record> input_;
  const InputSpec& spec_;
  const size_t stages_;
  const MakeDecoder source_decoder_;
  const std::function<Status(const Status&)> take_error_;
  const std::vector<TensorSpec> components_;
  const Expression expression_;
};

}  // namespace

DatasetPtr<Record> MakeFilter(DatasetPtr<Record> input, const Filter& filter, const InputSpec& spec, size_t stages,
                              MakeDecoder source_decoder, std::function<Status(const Status&)> take_error) {
  return std::make_unique<FilterDataset>(std::move(input), filter, spec, stages, std::move(source_decoder),
                                         std::move(take_error));
}

}  // namespace headrace::side
