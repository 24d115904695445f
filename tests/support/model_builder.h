#pragma once
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/derivation/analysis.h"
#include "core/torch/analysis/analyse.h"
#include "core/torch/tracing/op_table.h"

namespace retrograd::test {

/// Builds a ModelFile op by op, with LibTorch's schemas, as a reader would.
class ModelBuilder {
 public:
  ModelBuilder() {
    file_.path = "built by hand";
    file_.document = std::make_shared<Document>();
  }
  Document& document() { return *file_.document; }

  ValueId input(const std::string& name, std::vector<std::int64_t> sizes, DType dtype = DType::f32) {
    return add(InputKind::user, name, std::move(sizes), dtype, isDifferentiable(dtype));
  }
  /// Filled with numbers around 1 that differ from element to element.
  ValueId parameter(const std::string& name, std::vector<std::int64_t> sizes, bool requiresGrad = true) {
    const auto id = add(InputKind::parameter, name, sizes, DType::f32, requiresGrad);
    file_.weights[name] = data(sizes, 0.5f);
    return id;
  }
  ValueId buffer(const std::string& name, std::vector<std::int64_t> sizes) {
    const auto id = add(InputKind::buffer, name, sizes, DType::f32, false);
    file_.weights[name] = data(sizes, 1.f);
    return id;
  }

  static Argument i(std::int64_t n) { return Argument::ofInt(n); }
  static Argument list(std::initializer_list<std::int64_t> items) {
    std::vector<Argument> arguments;
    for (auto n : items) arguments.push_back(Argument::ofInt(n));
    return Argument::ofList(arguments);
  }

  /// An argument of op(): a value or a literal.
  struct Arg {
    ValueId value;
    Argument literal;
    Arg(ValueId v) : value(v) {}
    Arg(Argument a) : literal(std::move(a)) {}
    Arg(int n) : literal(Argument::ofInt(n)) {}
    Arg(double d) : literal(Argument::ofReal(d)) {}
    Arg(std::vector<ValueId> list) : values(std::move(list)) {}
    std::vector<ValueId> values;  ///< a list of tensors
  };

  std::vector<ValueId> multi(const std::string& name, std::vector<Arg> arguments, std::size_t outputs,
                             bool gradMode = true, bool listReturn = false) {
    const auto symbol = lookupSymbol(name);
    if (!symbol) throw Error(ErrorCode::unknownOp, "no such op", name);
    CallPattern pattern;
    std::vector<ValueId> operands;
    for (auto& argument : arguments) {
      if (!argument.values.empty()) {
        std::vector<Argument> holes;
        for (auto value : argument.values) {
          holes.push_back(Argument::ofOperand(static_cast<std::int64_t>(operands.size())));
          operands.push_back(value);
        }
        pattern.arguments.push_back(Argument::ofList(std::move(holes)));
      } else if (argument.value) {
        pattern.arguments.push_back(Argument::ofOperand(static_cast<std::int64_t>(operands.size())));
        operands.push_back(argument.value);
      } else {
        pattern.arguments.push_back(argument.literal);
      }
    }
    pattern.arguments.resize(symbol->arguments.size(), Argument::ofMissing());
    pattern.operandCount = static_cast<std::int32_t>(operands.size());
    if (listReturn) pattern.returns = {static_cast<std::int32_t>(outputs)};
    BoundSymbol bound;
    bound.symbol = document().internSymbol(*symbol);
    bound.pattern = document().internPattern(pattern);
    bound.gradMode = gradMode;
    bound.name = document().intern(name + "#" + std::to_string(file_.computation.trace.ops.size()));
    std::vector<ValueId> results;
    for (std::size_t k = 0; k < outputs; ++k) results.push_back(document().addValue({}));
    const auto op = document().addBoundSymbol(bound, operands, results);
    for (auto result : results) document().value(result).producer = op;
    file_.computation.trace.ops.push_back(op);
    return results;
  }
  ValueId op(const std::string& name, std::vector<Arg> arguments, bool gradMode = true) {
    return multi(name, std::move(arguments), 1, gradMode)[0];
  }

  void output(ValueId value) {
    OutputSpec spec;
    spec.value = value;
    file_.computation.outputs.push_back(spec);
    file_.computation.trace.outputs.push_back(value);
  }
  BoundSymbolId lastOp() const { return file_.computation.trace.ops.back(); }

  std::shared_ptr<const Analysis> analyse(const DerivationRequest& options = {}) {
    return retrograd::analyse(std::move(file_), options);
  }
  ModelFile take() { return std::move(file_); }

 private:
  ValueId add(InputKind kind, const std::string& name, std::vector<std::int64_t> sizes, DType dtype,
              bool requiresGrad) {
    TensorMeta meta;
    meta.dtype = dtype;
    meta.strides = contiguousStrides(sizes);
    meta.sizes = std::move(sizes);
    Value value;
    value.name = document().intern(name);
    value.meta = document().internMeta(meta);
    value.kind = kind == InputKind::user        ? ValueKind::input
                 : kind == InputKind::parameter ? ValueKind::parameter
                                                : ValueKind::buffer;
    value.storage = document().addStorage(meta.bytes(), {}, true);
    const auto id = document().addValue(value);
    document().storage(value.storage).first = id;
    InputSpec spec;
    spec.kind = kind;
    spec.name = name;
    spec.target = name;
    spec.requiresGrad = requiresGrad;
    spec.value = id;
    file_.computation.inputs.push_back(spec);
    file_.computation.trace.inputs.push_back(id);
    return id;
  }

  static TensorData data(const std::vector<std::int64_t>& sizes, float start) {
    TensorData tensor;
    tensor.meta.sizes = sizes;
    tensor.meta.strides = contiguousStrides(sizes);
    auto numbers = std::make_shared<std::vector<float>>(
        static_cast<std::size_t>(std::max<std::int64_t>(tensor.meta.elements(), 1)));
    for (std::size_t k = 0; k < numbers->size(); ++k) (*numbers)[k] = start + 0.25f * static_cast<float>(k % 7);
    tensor.data = reinterpret_cast<const std::byte*>(numbers->data());
    tensor.bytes = static_cast<std::size_t>(tensor.meta.bytes());
    tensor.owner = numbers;
    return tensor;
  }

  ModelFile file_;
};

/// Names of a trace's ops, "aten." and ".overload" left out: "mul add sin".
inline std::string opNames(const Analysis& analysis, const Trace& trace) {
  std::string text;
  for (auto op : trace.ops) {
    const auto& name = analysis.document->symbol(op).name;
    text += (text.empty() ? "" : " ") + name.substr(5, name.rfind('.') - 5);
  }
  return text;
}

}  // namespace retrograd::test
