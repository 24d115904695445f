#pragma once
// What a program or a library (`--library libmyops.so`) needs to bring its own gradient rules. Header only and without
// LibTorch's headers, so that such a library compiles in seconds and links nothing of Retrograd. See docs/extending.md.
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/tensor_meta.h"
#include "core/trace/argument.h"

namespace retrograd {

/// An argument of a call in a rule: a tensor of the rule (what the scope's functions return), a number, a list, None.
struct RuleArgument : Argument {
  RuleArgument(Argument a) : Argument(std::move(a)) {}
  RuleArgument(bool b) : Argument(ofBool(b)) {}
  RuleArgument(int i) : Argument(ofInt(i)) {}
  RuleArgument(std::int64_t i) : Argument(ofInt(i)) {}
  RuleArgument(double d) : Argument(ofReal(d)) {}
  RuleArgument(std::vector<Argument> items) : Argument(ofList(std::move(items))) {}
};
using RuleArguments = std::vector<Argument>;

/// What a rule works with while it is run, once a signature, on shapes alone. A tensor is an Argument of kind `operand`
/// that only this scope can read; None represents an absent one.
class RuleScope {
 public:
  /// Emits an op ("aten.mul.Tensor", any op LibTorch knows) with arguments in schema order, trailing defaults left out.
  /// Returns its flat outputs: tensors, or literals where an output is a number. Ops that LibTorch composes of others
  /// appear as those. Throws Error naming the op: unknownOp, badInput (the arguments do not fit), unsupportedOp
  /// (LibTorch refuses the call).
  virtual std::vector<Argument> callAll(std::string_view op, const std::vector<RuleArgument>& arguments) = 0;
  /// The same for an op with one output.
  Argument call(std::string_view op, const std::vector<RuleArgument>& arguments) {
    return callAll(op, arguments).at(0);
  }

  /// The gradient that arrives at an output of the op. Where none arrives it is zeros, which are in the trace only if
  /// they are used.
  virtual Argument getGrad(const Argument& output) = 0;
  /// Adds `gradient` (None: nothing) to what flows on to `operand`, a tensor argument of the op; earlier gradients
  /// are the left operand of the sum.
  virtual void putGrad(const Argument& operand, const Argument& gradient) = 0;

  /// dtype, sizes and strides of a tensor.
  virtual const TensorMeta& meta(const Argument& tensor) const = 0;
  virtual bool requiresGrad(const Argument& operand) const = 0;

 protected:
  ~RuleScope() = default;
};

/// A grad transform: emits the forward, reads gradients with getGrad, writes them with putGrad, and returns the flat
/// outputs. `arguments` are the op's in schema order, tensors as operands, defaults filled in. Only what the outputs
/// need runs in the forward.
using GradTransform = std::function<std::vector<Argument>(RuleScope&, const RuleArguments& arguments)>;

/// An augmented forward: the op's flat outputs and what its backward wants to find again.
struct Augmented {
  std::vector<Argument> outputs, saved;
};
using AugmentedForward = std::function<Augmented(RuleScope&, const RuleArguments& arguments)>;
/// Gradients of the op's flat arguments, one for each at most and one for each tensor among them at least, tensors
/// first come, first served: the i-th is for the i-th tensor argument; None for what has none. `cotangents`: one for
/// each tensor output.
using AugmentedBackward = std::function<std::vector<Argument>(RuleScope&, const std::vector<Argument>& saved,
                                                              const std::vector<Argument>& cotangents)>;

/// An op in terms of others, its subsymbols; each of these then finds a rule of its own. Returns the flat outputs.
using Decomposition = std::function<std::vector<Argument>(RuleScope&, const RuleArguments& arguments)>;

/// Rules by op name ("aten.gelu.default", "myops.swish.default"). Virtual, so that a library calls it without linking
/// it. Order of precedence: grad transform, augmented pair, Retrograd's own rule (own_rules.h), LibTorch's derivative,
/// decomposition.
class RuleRegistry {
 public:
  virtual ~RuleRegistry();
  virtual void addGradTransform(std::string op, GradTransform rule);
  virtual void addAugmentedPair(std::string op, AugmentedForward forward, AugmentedBackward backward);
  virtual void addDecomposition(std::string op, Decomposition rule);

  struct Pair {
    AugmentedForward forward;
    AugmentedBackward backward;
  };
  const GradTransform* findGradTransform(std::string_view op) const;
  const Pair* findAugmentedPair(std::string_view op) const;
  const Decomposition* findDecomposition(std::string_view op) const;

 private:
  std::map<std::string, GradTransform, std::less<>> transforms_;
  std::map<std::string, Pair, std::less<>> pairs_;
  std::map<std::string, Decomposition, std::less<>> decompositions_;
};

/// What a library must be compiled for; another number is refused.
inline constexpr int libraryVersion = 1;

}  // namespace retrograd

/// In a library: `RETROGRAD_LIBRARY(rules) { rules.addGradTransform("myops.swish.default", ...); }`
#define RETROGRAD_LIBRARY(rules)                                                   \
  extern "C" int retrograd_library_version() { return retrograd::libraryVersion; } \
  extern "C" void retrograd_library_rules(                                         \
      retrograd::RuleRegistry& rules)  // NOLINT(bugprone-macro-parentheses): a declaration
