#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <utility>
#include <vector>

#include "tests/fuzz/programs/program.h"

namespace retrograd::fuzz {

at::ScalarType scalarType(DType dtype);

/// Runs calls through LibTorch's dispatcher on real tensors, autograd and all; higher-order ops mean what PyTorch says
/// they mean. Shares nothing with core's tracing, derivation or execution.
class Interpreter {
 public:
  /// `inDouble`: floating dtypes among the literals become float64, complex ones complex128. `size`: what s0 is.
  explicit Interpreter(const Program& program, bool inDouble = false, std::int64_t size = 0)
      : program_(&program), inDouble_(inDouble), size_(size) {}

  void bind(int value, c10::IValue content);
  const c10::IValue& value(int id) const { return values_.at(static_cast<std::size_t>(id)); }
  bool has(int id) const {
    return id >= 0 && static_cast<std::size_t>(id) < values_.size() && !values_[static_cast<std::size_t>(id)].isNone();
  }

  /// Throws std::exception where LibTorch refuses.
  void run(const Call& call);
  /// The same, and returns what came out instead of binding it: single values, lists unrolled; `returns` as in Call.
  std::vector<c10::IValue> results(const Call& call, std::vector<std::int32_t>& returns);
  void run(const std::vector<Call>& calls);
  c10::IValue argument(const Arg& arg, const c10::TypePtr& type) const;
  /// The op that was refused, where run() threw.
  const Call* refused() const { return underWay_; }
  /// What to do with each tensor that an op, higher-order ones left out, made or wrote to.
  void onTensor(std::function<void(const at::Tensor&)> visitor) { onTensor_ = std::move(visitor); }
  /// Runs a body on these values.
  std::vector<c10::IValue> runBody(const Body& body, const std::vector<c10::IValue>& arguments);

 private:
  std::vector<c10::IValue> runHigherOrder(const Call& call);
  std::vector<c10::IValue> loop(const Call& call, bool carries);
  std::vector<c10::IValue> whileLoop(const Call& call);
  std::vector<c10::IValue> plain(const Arg& arg) const;

  const Program* program_;
  bool inDouble_;
  std::int64_t size_;
  std::vector<c10::IValue> values_;
  const Call* underWay_ = nullptr;
  std::function<void(const at::Tensor&)> onTensor_;
};

}  // namespace retrograd::fuzz
