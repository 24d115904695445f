// Registered rules (registry.h): run on hollow tensors, recorded, and cut into forward and backward.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>

#include "core/torch/grad/own_rules.h"
#include "core/torch/grad/variant_source.h"
#include "core/torch/tracing/generator.h"

namespace retrograd {
namespace {

Argument tensorArgument(std::size_t reference) { return Argument::ofOperand(static_cast<std::int64_t>(reference)); }

/// The scope of one run of a rule. A tensor of the rule is its number in `tensors_`.
class Scope final : public RuleScope {
 public:
  /// A first run: each gradient comes, contiguous.
  Scope(Document& document, const RuleRequest& request)
      : document_(document), request_(request), recorder_(Recorder::Mode::hollow) {
    for (std::size_t i = 0; i < request.operands.size(); ++i) {
      tensors_.push_back(recorder_.addInput(document.meta(request.operands[i])));
      if (!request.real.empty()) recorder_.setReal(static_cast<std::int32_t>(i), request.real[i]);
    }
  }

  /// For a second run: which output each getGrad of the first was for, and the cotangents that really come.
  void expect(const std::vector<std::size_t>& asked, const std::vector<MetaId>& cotangents,
              const std::vector<at::Tensor>& data) {
    askedBefore_ = &asked;
    cotangents_ = &cotangents;
    data_ = &data;
  }

  std::vector<Argument> callAll(std::string_view name, const std::vector<RuleArgument>& arguments) override {
    auto results = callInto(name, {arguments.begin(), arguments.end()}, Role::none);
    if (log_) log_->push_back({std::string(name), {arguments.begin(), arguments.end()}, results});
    return results;
  }

  Argument getGrad(const Argument& output) override {
    if (log_)
      throw Error(ErrorCode::unsupportedOp, "a decomposition reads no gradients: its ops have rules of their own",
                  place());
    const auto local = localOf(output);
    for (const auto& read : reads_)
      if (read.of == local) return read.gradient;
    Read read{local, {}};
    if (!askedBefore_) {
      TensorMeta meta = metaOf(tensor(output));
      meta.strides = contiguousStrides(meta.sizes);
      meta.offset = 0;
      read.gradient = adopt(recorder_.addInput(meta));
    } else {
      if (reads_.size() >= askedBefore_->size())
        throw Error(ErrorCode::unsupportedOp, "the rule reads other gradients each time it is run", place());
      read.gradient = arriving((*askedBefore_)[reads_.size()], output);
    }
    reads_.push_back(read);
    return read.gradient;
  }

  void putGrad(const Argument& operand, const Argument& gradient) override {
    if (log_)
      throw Error(ErrorCode::unsupportedOp, "a decomposition writes no gradients: its ops have rules of their own",
                  place());
    if (operand.kind != Argument::Kind::operand || operand.integer < 0 ||
        operand.integer >= std::ssize(request_.operands))
      throw Error(ErrorCode::unsupportedOp, "put_grad on a value that is not a tensor argument of the op", place());
    if (gradient.kind == Argument::Kind::none) return;
    for (const auto& read : reads_)
      if (read.of == localOf(operand))
        throw Error(ErrorCode::unsupportedOp, "put_grad after get_grad on argument " + std::to_string(operand.integer),
                    place());
    const auto &wanted = tensor(operand), &given = tensor(gradient);
    if (wanted.sizes() != given.sizes() || wanted.scalar_type() != given.scalar_type())
      throw Error(ErrorCode::unsupportedOp,
                  fmt::format("the gradient of argument {} is {}, expected {}", operand.integer,
                              typeComment(metaOf(given)), typeComment(metaOf(wanted))),
                  place());
    if (requiresGrad(operand)) puts_.emplace_back(static_cast<std::int32_t>(operand.integer), localOf(gradient));
  }

  const TensorMeta& meta(const Argument& argument) const override {
    return metas_[argument.integer] = metaOf(tensor(argument));
  }
  bool requiresGrad(const Argument& operand) const override {
    return operand.kind == Argument::Kind::operand && operand.integer >= 0 &&
           operand.integer < std::ssize(request_.requiresGrad) && request_.requiresGrad[operand.integer];
  }

  /// From now on the calls are only noted, for a decomposition.
  void note(std::vector<DecomposedCall>& calls) { log_ = &calls; }

  /// Runs the rule; afterwards the outputs' locals are known, -1 for what is not a tensor.
  void run(const GradTransform& rule, const RuleArguments& arguments) {
    KeepGenerator keep;
    at::AutoGradMode noGrad(false);
    AutocastScope autocast(request_.autocast);
    for (const auto& output : guarded(rule, arguments)) {
      const bool isTensor = output.kind == Argument::Kind::operand;
      outputs.push_back(isTensor ? localOf(output) : -1);
      numbers.push_back(isTensor || output.kind == Argument::Kind::none ? std::nullopt : std::optional(output));
    }
    for (const auto& read : reads_) {
      if (std::ranges::find(outputs, read.of) == outputs.end())
        throw Error(ErrorCode::unsupportedOp, "get_grad on a value that the rule does not return", place());
      if (read.of < static_cast<std::int32_t>(request_.operands.size()))
        throw Error(ErrorCode::unsupportedOp,
                    "it returns an argument and reads its gradient; return a copy of it (aten.alias)", place());
    }
  }

  /// Which output the k-th getGrad was for.
  std::vector<std::size_t> asked() const {
    std::vector<std::size_t> result;
    for (const auto& read : reads_) result.push_back(std::ranges::find(outputs, read.of) - outputs.begin());
    return result;
  }
  const std::vector<std::pair<std::int32_t, std::int32_t>>& puts() const { return puts_; }
  const Recorder& recorder() const { return recorder_; }
  /// Local of the gradient that the k-th getGrad returned.
  std::int32_t gradientLocal(std::size_t k) { return localOf(reads_[k].gradient); }
  bool isZero(std::size_t op) const { return zeros_.contains(op); }

  std::vector<std::int32_t> outputs;
  std::vector<std::optional<Argument>> numbers;

 private:
  struct Read {
    std::int32_t of;  // local of the output
    Argument gradient;
  };

  /// A rule is somebody else's code: whatever it throws becomes an error that names its op.
  std::vector<Argument> guarded(const GradTransform& rule, const RuleArguments& arguments) {
    try {
      return rule(*this, arguments);
    } catch (const NeedsData&) {
      throw;
    } catch (const c10::Error&) {
      throw;
    } catch (const Error& e) {
      if (e.code() == ErrorCode::badInput)
        throw Error(ErrorCode::unsupportedOp, e.message(), place() + ": " + e.place());
      throw;
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& e) {
      throw Error(ErrorCode::unsupportedOp, std::string("it fails: ") + e.what(), place());
    }
  }

  std::string place() const { return "rule of torch.ops." + std::string(request_.op); }

  const at::Tensor& tensor(const Argument& argument) const {
    if (argument.kind != Argument::Kind::operand || argument.integer < 0 || argument.integer >= std::ssize(tensors_))
      throw Error(ErrorCode::unsupportedOp, "a tensor of this rule is expected", place());
    return tensors_[argument.integer];
  }
  std::int32_t localOf(const Argument& argument) { return recorder_.localOf(tensor(argument)); }

  Argument adopt(const at::Tensor& tensor) {
    tensors_.push_back(tensor);
    return tensorArgument(tensors_.size() - 1);
  }

  /// The cotangent of an output, or zeros where none comes.
  Argument arriving(std::size_t output, const Argument& like) {
    if (output < cotangents_->size() && (*cotangents_)[output]) {
      const auto id = static_cast<std::int32_t>(recorder_.locals().size());
      auto hollow = recorder_.addInput(document_.meta((*cotangents_)[output]));
      if (!data_->empty() && (*data_)[output].defined()) recorder_.setReal(id, (*data_)[output]);
      return adopt(hollow);
    }
    return callInto("aten.zeros_like.default", {like}, Role::zero).at(0);
  }

  std::vector<Argument> callInto(std::string_view name, std::vector<Argument> arguments, Role role) {
    const auto op = requireOperator(name);
    if (arguments.size() > op.schema().arguments().size())
      throw Error(ErrorCode::badInput,
                  fmt::format("{} arguments are given, it takes {}", arguments.size(), op.schema().arguments().size()),
                  std::string(name));
    CallPattern pattern{.arguments = std::move(arguments)};
    for (const auto& argument : pattern.arguments)
      forEachOperand(argument, [&](std::size_t hole) { (void)tensor(tensorArgument(hole)); });
    const PreparedCall call(op, pattern);
    const auto begin = recorder_.ops().size();
    std::vector<Argument> results;
    Interception interception(recorder_);
    auto stack = call.arguments([&](std::size_t hole) { return c10::IValue(tensors_[hole]); });
    op.callBoxed(stack);
    for (const auto& value : flatten(stack)) {
      if (value.isTensor())
        results.push_back(value.toTensor().defined() ? adopt(value.toTensor()) : Argument::ofNone());
      else results.push_back(numberArgument(value).value_or(Argument::ofNone()));
    }
    if (role == Role::zero)
      for (auto i = begin; i < recorder_.ops().size(); ++i) zeros_.insert(i);
    return results;
  }

  Document& document_;
  const RuleRequest& request_;
  Recorder recorder_;
  std::vector<at::Tensor> tensors_;
  mutable std::map<std::size_t, TensorMeta> metas_;
  std::vector<Read> reads_;
  std::vector<std::pair<std::int32_t, std::int32_t>> puts_;
  std::set<std::size_t> zeros_;
  std::vector<DecomposedCall>* log_ = nullptr;
  const std::vector<std::size_t>* askedBefore_ = nullptr;
  const std::vector<MetaId>* cotangents_ = nullptr;
  const std::vector<at::Tensor>* data_ = nullptr;
};

/// Which of the recorded ops the outputs need.
std::vector<char> neededByOutputs(const Recorder& recorder, const std::vector<std::int32_t>& outputs) {
  std::vector<char> needed(recorder.locals().size(), 0), forward(recorder.ops().size(), 0);
  for (auto local : outputs)
    if (local >= 0) needed[local] = 1;
  for (std::size_t i = recorder.ops().size(); i-- > 0;) {
    const auto& op = recorder.ops()[i];
    forward[i] = std::ranges::any_of(op.outputs, [&](std::int32_t local) { return local >= 0 && needed[local]; });
    if (!forward[i]) continue;
    for (auto local : op.operands) needed[local] = 1;
    for (auto local : op.outputs)
      if (local >= 0) needed[local] = 1;
  }
  return forward;
}

/// Renumbers the recorder's locals in the order in which they are asked for: operands, then the forward's, then the
/// backward's.
class Renumbering {
 public:
  Renumbering(Document& document, const Recorder& recorder, std::size_t operands)
      : document_(document), recorder_(recorder), numbers_(recorder.locals().size(), -1) {
    for (std::size_t i = 0; i < operands; ++i) number(static_cast<std::int32_t>(i));
  }

  std::int32_t number(std::int32_t local) {
    if (local < 0) return -1;
    auto& known = numbers_[local];
    if (known >= 0) return known;
    known = static_cast<std::int32_t>(locals_.size());
    locals_.push_back(toRuleLocal(document_, recorder_.locals()[local]));
    if (const auto constant = recorder_.constants().find(local);
        constant != recorder_.constants().end() && !constant->second.is_meta())
      constants_.emplace_back(known, copyOut(constant->second));
    return known;
  }

  RuleOp convert(std::size_t i) {
    auto op = toRuleOp(document_, recorder_, recorder_.ops()[i]);
    for (auto& local : op.operands) local = number(local);
    for (auto& local : op.outputs) local = number(local);
    return op;
  }

  std::vector<RuleLocal>& locals() { return locals_; }
  /// Literals numbered since the last call.
  RuleConstants takeConstants() { return std::exchange(constants_, {}); }

 private:
  Document& document_;
  const Recorder& recorder_;
  std::vector<std::int32_t> numbers_;
  std::vector<RuleLocal> locals_;
  RuleConstants constants_;
};

/// The op's arguments in schema order, tensors as operands, defaults filled in.
RuleArguments argumentsOf(const c10::OperatorHandle& op, const CallPattern& pattern) {
  RuleArguments arguments = pattern.arguments;
  arguments.resize(op.schema().arguments().size(), Argument::ofMissing());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].kind != Argument::Kind::missing) continue;
    const auto& given = op.schema().arguments()[i].default_value();
    arguments[i] = given ? numberArgument(*given).value_or(Argument::ofNone()) : Argument::ofNone();
    if (given && given->isString()) arguments[i] = Argument::ofString(given->toStringRef());
  }
  return arguments;
}

class RegisteredDerivation final : public VariantSource {
 public:
  RegisteredDerivation(const RuleRequest& request, GradTransform rule)
      : VariantSource(std::string(request.op)), pattern_(*request.pattern), request_(request), rule_(std::move(rule)) {
    request_.op = name;
    request_.pattern = &pattern_;
    arguments_ = argumentsOf(requireOperator(name), pattern_);
  }

  void forward(Document& document, Rule& rule) {
    Scope scope(document, request_);
    scope.run(rule_, arguments_);
    checkOutputs(scope.outputs.size());
    asked_ = scope.asked();
    Renumbering renumbering(document, scope.recorder(), request_.operands.size());
    const auto isForward = neededByOutputs(scope.recorder(), scope.outputs);
    for (std::size_t i = 0; i < isForward.size(); ++i)
      if (isForward[i]) rule.forward.push_back(renumbering.convert(i));
    rule.outputRequiresGrad.assign(scope.outputs.size(), 0);
    for (auto output : asked_) rule.outputRequiresGrad[output] = 1;
    rule.anyRequiresGrad = !asked_.empty();
    for (auto local : scope.outputs) rule.outputs.push_back(renumbering.number(local));
    rule.numbers = scope.numbers;
    rule.constants = renumbering.takeConstants();
    rule.locals = renumbering.locals();
    rule.dataDependent = scope.recorder().dataDependent();
  }

  BackwardVariant backward(Document& document, Rule& rule, const std::vector<MetaId>& cotangents,
                           const std::vector<at::Tensor>& real) override {
    Scope scope(document, request_);
    scope.expect(asked_, cotangents, real);
    scope.run(rule_, arguments_);
    const auto& recorder = scope.recorder();
    Renumbering renumbering(document, recorder, request_.operands.size());
    const auto isForward = neededByOutputs(recorder, scope.outputs);
    std::size_t forwardOps = 0;
    for (std::size_t i = 0; i < isForward.size(); ++i)
      if (isForward[i]) renumbering.convert(i), ++forwardOps;
    for (auto local : scope.outputs) renumbering.number(local);
    (void)renumbering.takeConstants();
    if (forwardOps != rule.forward.size() || renumbering.locals().size() != rule.locals.size())
      throw Error(ErrorCode::unsupportedOp, "the forward depends on which gradients come", "rule of torch.ops." + name);
    BackwardVariant variant;
    variant.cotangents.assign(rule.outputs.size(), -1);
    for (std::size_t k = 0; k < asked_.size(); ++k)
      if (asked_[k] < cotangents.size() && cotangents[asked_[k]])
        variant.cotangents[asked_[k]] = renumbering.number(scope.gradientLocal(k));
    for (std::size_t i = 0; i < isForward.size(); ++i) {
      if (isForward[i]) continue;
      variant.ops.push_back(renumbering.convert(i));
      if (scope.isZero(i)) variant.ops.back().role = Role::zero;
    }
    for (const auto& [operand, local] : scope.puts())
      variant.gradients.emplace_back(operand, renumbering.number(local));
    variant.constants = renumbering.takeConstants();
    adoptStorages(rule, renumbering.locals(), variant);
    variant.dataDependent = recorder.dataDependent();
    markWhoseGradient(variant, renumbering.locals().size());
    return variant;
  }

 private:
  /// How many tensors a returned list has only the call knows.
  void checkOutputs(std::size_t count) const {
    const auto& returns = requireOperator(name).schema().returns();
    const bool hasList = std::ranges::any_of(
        returns, [](const c10::Argument& r) { return r.type()->kind() == c10::TypeKind::ListType; });
    if (hasList || count == returns.size()) return;
    throw Error(ErrorCode::unsupportedOp,
                fmt::format("While generating forward and backward functions for {}, encountered an error.\nThe number "
                            "of outputs of the gradient transform "
                            "function must be the same as the number of outputs of the original forward function.\nThe "
                            "rule returned {}, the op has {}.",
                            name, count, returns.size()),
                "torch.ops." + name);
  }

  /// Storage numbers are a recorder's own: the forward's locals keep the rule's, what the backward makes is numbered
  /// after these.
  static void adoptStorages(const Rule& rule, const std::vector<RuleLocal>& locals, BackwardVariant& variant) {
    std::map<std::int32_t, std::int32_t> storages;
    std::int32_t next = 0;
    for (std::size_t i = 0; i < rule.locals.size(); ++i) {
      storages.try_emplace(locals[i].storage, rule.locals[i].storage);
      next = std::max(next, rule.locals[i].storage + 1);
    }
    for (std::size_t i = rule.locals.size(); i < locals.size(); ++i) {
      variant.locals.push_back(locals[i]);
      auto& storage = variant.locals.back().storage;
      if (storage < 0) continue;
      const auto [known, isNew] = storages.try_emplace(storage, next);
      if (isNew) ++next;
      storage = known->second;
    }
  }

  CallPattern pattern_;
  RuleRequest request_;
  GradTransform rule_;
  RuleArguments arguments_;
  std::vector<std::size_t> asked_;
};

void collect(const Argument& argument, std::vector<Argument>& tensors, std::size_t& count) {
  if (argument.kind == Argument::Kind::list) {
    for (const auto& item : argument.items) collect(item, tensors, count);
    return;
  }
  ++count;
  if (argument.kind == Argument::Kind::operand) tensors.push_back(argument);
}

bool isDifferentiable(const RuleScope& scope, const Argument& argument) {
  return argument.kind == Argument::Kind::operand && isDifferentiable(scope.meta(argument).dtype);
}

/// An augmented forward and its backward as one grad transform.
GradTransform fromPair(const RuleRegistry::Pair& pair, const std::string& op) {
  return [pair, op](RuleScope& scope, const RuleArguments& arguments) {
    std::vector<Argument> tensors;
    std::size_t flatInputs = 0;
    for (const auto& argument : arguments) collect(argument, tensors, flatInputs);
    auto augmented = pair.forward(scope, arguments);
    std::vector<Argument> cotangents;
    for (auto& output : augmented.outputs) {
      if (output.kind != Argument::Kind::operand) continue;
      // An output that is an argument itself becomes a shallow copy, or its gradient would be the argument's.
      if (std::ranges::find(tensors, output) != tensors.end()) output = scope.call("aten.alias.default", {output});
      cotangents.push_back(isDifferentiable(scope, output) ? scope.getGrad(output) : Argument::ofNone());
    }
    const auto gradients = pair.backward(scope, augmented.saved, cotangents);
    if (gradients.size() < tensors.size() || gradients.size() > flatInputs)
      throw Error(
          ErrorCode::unsupportedOp,
          fmt::format("Backward for {} returned {} value(s), but expected {}", op, gradients.size(), tensors.size()),
          "torch.ops." + op);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (i < tensors.size()) scope.putGrad(tensors[i], gradients[i]);
      else if (gradients[i].kind != Argument::Kind::none)
        throw Error(ErrorCode::unsupportedOp,
                    fmt::format("Backward for {} returned a gradient for an argument that is not a tensor", op),
                    "torch.ops." + op);
    }
    return augmented.outputs;
  };
}

std::optional<GradTransform> registeredRule(const Document& document, const RuleRequest& request) {
  if (!request.gradMode || std::ranges::none_of(request.requiresGrad, [](char r) { return r; })) return {};
  if (request.rules) {
    if (const auto* transform = request.rules->findGradTransform(request.op)) return *transform;
    if (const auto* pair = request.rules->findAugmentedPair(request.op))
      return fromPair(*pair, std::string(request.op));
  }
  const auto* own = ownRules().findGradTransform(request.op);
  const auto isOnCpu = [&](MetaId operand) { return document.meta(operand).device.type == Device::Type::cpu; };
  return own && std::ranges::all_of(request.operands, isOnCpu) ? std::optional(*own) : std::nullopt;
}

}  // namespace

std::unique_ptr<Rule> deriveRegistered(Document& document, const RuleRequest& request) {
  const auto registered = registeredRule(document, request);
  if (!registered) return nullptr;
  const std::string name(request.op);
  if (requireOperator(name).schema().is_mutable())
    throw Error(ErrorCode::unsupportedOp, "it writes to an argument; register the rule for an op that does not",
                "torch.ops." + name);
  auto rule = std::make_unique<Rule>();
  rule->operandCount = static_cast<std::int32_t>(request.operands.size());
  auto* derivation = new RegisteredDerivation(request, *registered);
  rule->variantSource.reset(derivation);
  try {
    derivation->forward(document, *rule);
  } catch (const c10::Error& e) {
    throw refused(e, name);
  }
  return rule;
}

Decomposed decompose(Document& document, const RuleRequest& request, const Decomposition& decomposition) {
  const std::string name(request.op);
  Decomposed result;
  Scope scope(document, request);
  scope.note(result.calls);
  const auto run = [&](RuleScope& into, const RuleArguments& arguments) {
    return result.outputs = decomposition(into, arguments);
  };
  try {
    scope.run(run, argumentsOf(requireOperator(name), *request.pattern));
  } catch (const c10::Error& e) {
    throw refused(e, name);
  }
  return result;
}

}  // namespace retrograd
