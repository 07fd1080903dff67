// The expressions of filter, over the components of one record:
//
//   label < 5 && (x[0] >= 0.5 || !`image/valid`)
//
//   ||  &&  == !=  < <= > >=  + -  * / %  unary ! -      as in C, loosest first, all of the left but the unary ones
//   numbers, true, false, names of components, with one constant index a dimension; a name that is no word in `s
//
// Types are TensorFlow's, with Python's constants: integers are exact (and wrap), floats are computed in float32 where
// all of them are (float16 and bfloat16 as float32), a constant takes the type of what it meets. Where an integer meets
// a float that is no constant, and in `/`, both become floats. `%` has the sign of the divisor, as tf.math.floormod; an
// integer % 0 is 0.
#pragma once

#include <string>
#include <vector>

#include "common/spec/plan.h"

namespace headrace {

class Expression {
 public:
  enum class Type { kBool, kInt, kFloat32, kFloat64 };
  enum class Op {
    kConstant,
    kLoad,
    kToFloat,
    kNot,
    kNegate,
    kMultiply,
    kDivide,
    kModulo,
    kAdd,
    kSubtract,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kEqual,
    kNotEqual,
    kAnd,
    kOr
  };
  // A value, or an operation on those of earlier nodes.
  struct Node {
    Op op = Op::kConstant;
    Type type = Type::kBool;
    bool is_constant = false;  // made of constants alone: takes the float type of what it meets
    int left = -1;
    int right = -1;
    int64_t integer = 0;   // of a constant of type kBool or kInt
    double number = 0;     // of one of a float type
    size_t component = 0;  // of kLoad: which
    size_t value = 0;      // and which of its values
  };

  // The components' types are of one record. The result must be a bool. Errors: InvalidArgument with the column in
  // `text`, from 1, and a remedy.
  static Result<Expression> Parse(const std::string& text, const std::vector<TensorSpec>& components);

  const std::vector<Node>& nodes() const { return nodes_; }  // the last is the result

 private:
  std::vector<Node> nodes_;
};

}  // namespace headrace
