#include <algorithm>
#include <deque>
#include <set>

#include "core/base/enum_array.h"
#include "core/derivation/gradient_of.h"
#include "core/formats/recording/recording.h"
#include "core/questions/why.h"
#include "core/questions/why_recorded.h"
#include "core/trace/op_traits.h"

namespace retrograd {

std::string_view name(GradientStop::Kind kind) {
  static constexpr EnumArray<GradientStop::Kind, std::string_view, 8> names{
      "not requested", "not differentiable",       "unused",       "no_grad region", "detached",
      "integer op",    "output without cotangent", "no derivative"};
  return names[kind];
}

namespace {

/// Follows the value through the computation, breadth first, so that shorter ways come first.
class GradientQuestion {
 public:
  GradientQuestion(const Analysis& analysis, ValueId value)
      : analysis_(analysis), document_(*analysis.document), computation_(analysis.computation()) {
    answer_.value = value;
    for (auto op : computation_.trace.ops)
      for (auto operand : document_.operands(op))
        if (operand) users_[operand.index].push_back(op);
  }

  WhyNoGradient run() {
    answer_.gradient = gradientOf(analysis_, answer_.value);
    if (answer_.gradient || stopsAtItself()) return std::move(answer_);
    if (analysis_.file.recording) {
      answer_.stops = recordedStops(analysis_, answer_.value);
      return std::move(answer_);
    }
    visit({answer_.value, {}});
    while (!open_.empty()) {
      const auto way = open_.front();
      open_.pop_front();
      follow(way);
    }
    return std::move(answer_);
  }

 private:
  using Kind = GradientStop::Kind;
  struct Way {
    ValueId value;
    std::vector<BoundSymbolId> path;
  };

  const InputSpec* input(ValueId value) const {
    for (std::size_t i = 0; i < computation_.inputs.size(); ++i)
      if (computation_.trace.inputs[i] == value) return &computation_.inputs[i];
    return nullptr;
  }

  bool differentiable(ValueId id) const {
    const auto meta = document_.value(id).meta;
    return meta && isDifferentiable(document_.meta(meta).dtype);
  }

  bool stopsAtItself() {
    const auto& value = document_.value(answer_.value);
    const auto* spec = input(answer_.value);
    if (value.meta && !differentiable(answer_.value))
      return stop(Kind::notDifferentiable, {}, {answer_.value, {}}), true;
    if (spec && !value.requiresGrad) return stop(Kind::notRequested, {}, {answer_.value, {}}), true;
    return false;
  }

  void stop(Kind kind, BoundSymbolId op, const Way& way) { answer_.stops.push_back({kind, op, way.value, way.path}); }

  void visit(Way way) {
    if (seen_.insert(way.value).second) open_.push_back(std::move(way));
  }

  void follow(const Way& way) {
    const auto users = users_.find(way.value.index);
    bool ends = users == users_.end();
    for (std::size_t i = 0; i < computation_.trace.outputs.size(); ++i) {
      if (computation_.trace.outputs[i] != way.value) continue;
      ends = false;
      const auto cotangent = analysis_.joint.inputs.size() > computation_.trace.inputs.size() + i
                                 ? analysis_.joint.inputs[computation_.trace.inputs.size() + i]
                                 : ValueId();
      if (!cotangent) stop(Kind::outputWithoutCotangent, {}, way);
      else if (!way.path.empty())
        stop(Kind::noDerivative, way.path.back(), way);  // a gradient comes in here and did not get through
    }
    if (ends) stop(Kind::unused, {}, way);
    if (users == users_.end()) return;
    for (auto op : users->second) through(op, way);
  }

  void through(BoundSymbolId op, const Way& way) {
    const auto& bound = document_.boundSymbol(op);
    const auto& symbol = document_.symbol(bound.symbol);
    auto next = way;
    next.path.push_back(op);
    if (!bound.gradMode || disablesGrad(op)) return stop(Kind::noGradRegion, op, next);
    if (hasTrait(symbol.name, OpTrait::detach)) return stop(Kind::detached, op, next);
    bool any = false;
    for (auto output : document_.outputs(op)) {
      // Where the file gives no shape the value is taken to be differentiable.
      if (!output || (document_.value(output).meta && !differentiable(output))) continue;
      any = true;
      visit({output, next.path});
    }
    if (any) return;
    if (symbol.isMutable && !document_.operands(op).empty()) return visit({document_.operands(op)[0], next.path});
    stop(Kind::integerOp, op, next);
  }

  bool disablesGrad(BoundSymbolId op) const {
    const auto& bound = document_.boundSymbol(op);
    if (!hasTrait(document_.symbol(bound.symbol).name, OpTrait::setsGradMode)) return false;
    const auto& arguments = document_.pattern(bound.pattern).arguments;
    return !arguments.empty() && arguments[0].kind == Argument::Kind::boolean && arguments[0].integer == 0;
  }

  const Analysis& analysis_;
  const Document& document_;
  const Computation& computation_;
  std::map<std::int32_t, std::vector<BoundSymbolId>> users_;
  std::set<ValueId> seen_;
  std::deque<Way> open_;
  WhyNoGradient answer_;
};

}  // namespace

WhyNoGradient whyNoGradient(const Analysis& analysis, ValueId value) {
  if (!analysis.document->contains(value)) badUse("there is no such value");
  return GradientQuestion(analysis, value).run();
}

std::string reasonOf(const Document& document, const GradientStop& stop) {
  const auto op = stop.op ? document.opName(stop.op) : std::string();
  const auto value = document.displayName(stop.value);
  switch (stop.kind) {
    case GradientStop::Kind::notRequested: return value + " is not to be differentiated: requires_grad is false";
    case GradientStop::Kind::notDifferentiable: return value + " is not a floating or complex tensor";
    case GradientStop::Kind::unused: return "nothing reads " + value;
    case GradientStop::Kind::noGradRegion: return op + " runs without grad mode";
    case GradientStop::Kind::detached: return op + " cuts it off";
    case GradientStop::Kind::integerOp: return "the results of " + op + " are not floating or complex tensors";
    case GradientStop::Kind::outputWithoutCotangent:
      return "it ends in the output " + value + ", into which no gradient comes";
    case GradientStop::Kind::noDerivative: return op + " passes no gradient on to it";
  }
  return {};
}

std::string describe(const Document& document, const GradientStop& stop) {
  const auto line = lineOf(document, stop);
  return reasonOf(document, stop) + (line.empty() ? "" : ", " + line);
}

std::string lineOf(const Document& document, const GradientStop& stop) {
  const auto op = stop.op || stop.path.empty() ? stop.op : stop.path.back();
  return op ? recordedLine(document, op) : std::string();
}

std::optional<ValueId> findValue(const Analysis& analysis, const std::string& name) {
  const auto& document = *analysis.document;
  const auto& computation = analysis.computation();
  for (std::size_t i = 0; i < computation.inputs.size(); ++i) {
    const auto& spec = computation.inputs[i];
    const bool alias = std::find(spec.aliases.begin(), spec.aliases.end(), name) != spec.aliases.end();
    if (computation.trace.inputs[i] && (spec.name == name || spec.target == name || alias))
      return computation.trace.inputs[i];
  }
  for (const auto id : document.valueIds())
    if (document.displayName(id) == name) return id;
  return std::nullopt;
}

std::vector<std::string> valueNames(const Analysis& analysis) {
  std::vector<std::string> names;
  for (const auto& spec : analysis.computation().inputs) {
    names.push_back(spec.name);
    if (!spec.target.empty()) names.push_back(spec.target);
    names.insert(names.end(), spec.aliases.begin(), spec.aliases.end());
  }
  for (const auto id : analysis.document->valueIds()) names.push_back(analysis.document->displayName(id));
  return names;
}

}  // namespace retrograd
