#include "core/questions/why_recorded.h"

#include <algorithm>
#include <deque>
#include <set>

#include "core/formats/recording/recorded_links.h"
#include "core/trace/effects.h"
#include "core/trace/op_traits.h"

namespace retrograd {
namespace {

/// Whether no number of what it reads goes on.
bool readsSizesAlone(std::string_view op) { return op.find("_like.") != op.npos || op.starts_with("aten.new_"); }

class RecordedQuestion {
 public:
  explicit RecordedQuestion(const Analysis& analysis)
      : document_(*analysis.document),
        recording_(*analysis.file.recording),
        ops_(analysis.computation().trace.ops),
        links_(document_, recording_) {
    for (const auto op : ops_)
      if (links_.isForward(op))
        for (const auto operand : document_.operands(op))
          if (operand) users_[operand.index].push_back(op);
  }

  std::vector<GradientStop> stopsOf(ValueId value) {
    stops_.clear();
    seen_.clear();
    visit({value, {}});
    while (!open_.empty()) {
      const auto way = open_.front();
      open_.pop_front();
      const auto users = users_.find(way.value.index);
      if (users == users_.end()) stop(Kind::unused, {}, way);
      else
        for (const auto op : users->second) through(op, way);
    }
    const auto leads = [](const Found& one) { return one.leads; };
    if (std::ranges::any_of(stops_, leads)) std::erase_if(stops_, [&](const Found& one) { return !leads(one); });
    std::vector<GradientStop> stops;
    for (auto& one : stops_)
      if (!isSaid(stops, one.stop)) stops.push_back(std::move(one.stop));
    return stops;
  }

 private:
  using Kind = GradientStop::Kind;
  struct Way {
    ValueId value;
    std::vector<BoundSymbolId> path;
  };
  struct Found {
    GradientStop stop;
    bool leads = false;  ///< to a loss, by way of numbers
  };

  /// The same statement of Python, in another step or on another way.
  bool isSaid(const std::vector<GradientStop>& stops, const GradientStop& stop) const {
    return std::ranges::any_of(stops, [&](const GradientStop& one) {
      if (one.kind != stop.kind || !one.op || !stop.op) return false;
      const auto &mine = document_.boundSymbol(stop.op), &other = document_.boundSymbol(one.op);
      return mine.symbol == other.symbol && mine.source == other.source && mine.module == other.module;
    });
  }

  void stop(Kind kind, BoundSymbolId op, const Way& way) {
    Found found{.stop = {kind, op, way.value, way.path}};
    if (op)
      for (const auto output : document_.outputs(op)) found.leads |= links_.leadsToLoss(output);
    stops_.push_back(std::move(found));
  }

  void visit(Way way) {
    if (seen_.insert(way.value).second) open_.push_back(std::move(way));
  }

  bool differentiable(ValueId value) const {
    return value && document_.isTensor(value) && isDifferentiable(document_.meta(value).dtype);
  }

  /// Whether an op writes the memory of a detached alias: what reads it under its own name has no history of that.
  bool writesDetached(BoundSymbolId op) const {
    for (auto written : writtenOperands(document_, op))
      while (written) {
        const auto producer = document_.value(written).producer;
        if (!recording_.has(producer)) break;
        if (hasTrait(document_.symbol(producer).name, OpTrait::detach)) return !links_.isAlias(producer);
        const bool isView = document_.boundSymbol(producer).effects & effect::view;
        written = isView ? document_.operands(producer)[0] : ValueId();
      }
    return false;
  }

  void through(BoundSymbolId op, const Way& way) {
    auto next = way;
    if (links_.isAlias(op)) return visit({document_.outputs(op)[0], way.path});
    if (readsSizesAlone(document_.symbol(op).name)) return;
    next.path.push_back(op);
    if (!links_.isSeen(op)) return stop(Kind::noGradRegion, op, next);
    const bool isOwn =
        recording_.op(op).function.valid();  // within it, autograd sees nothing, and its node stands for all
    if (!isOwn && hasTrait(document_.symbol(op).name, OpTrait::detach)) return stop(Kind::detached, op, next);
    if (!isOwn && writesDetached(op)) return stop(Kind::detached, op, next);
    if (!links_.backward(op).empty()) return stop(Kind::noDerivative, op, next);
    bool any = false;
    for (const auto output : document_.outputs(op)) {
      if (!differentiable(output)) continue;
      any = true;
      visit({output, next.path});
    }
    if (!any) stop(Kind::integerOp, op, next);
  }

  const Document& document_;
  const StepRecording& recording_;
  const std::vector<BoundSymbolId>& ops_;
  const RecordedLinks links_;
  std::unordered_map<std::int32_t, std::vector<BoundSymbolId>> users_;
  std::set<ValueId> seen_;
  std::deque<Way> open_;
  std::vector<Found> stops_;
};

}  // namespace

std::vector<GradientStop> recordedStops(const Analysis& analysis, ValueId value) {
  return RecordedQuestion(analysis).stopsOf(value);
}

std::vector<NoGradientCause> causesOfNoGradient(const Analysis& analysis, const std::vector<std::string>& parameters) {
  constexpr std::size_t most = 100;  // which are asked about; of all others nothing is said
  std::vector<NoGradientCause> causes;
  RecordedQuestion question(analysis);
  std::size_t asked = 0;
  for (const auto& parameter : parameters) {
    NoGradientCause cause{.parameters = {parameter}};
    const auto value = asked++ < most ? findValue(analysis, parameter) : std::nullopt;
    auto stops = value ? question.stopsOf(*value) : std::vector<GradientStop>();
    if (!stops.empty()) {
      cause.stop = std::move(stops.front());
      cause.reason = reasonOf(*analysis.document, *cause.stop);
      cause.line = lineOf(*analysis.document, *cause.stop);
    }
    const auto same = std::ranges::find_if(
        causes, [&](const NoGradientCause& one) { return one.reason == cause.reason && one.line == cause.line; });
    if (same == causes.end()) causes.push_back(std::move(cause));
    else same->parameters.push_back(parameter);
  }
  return causes;
}

}  // namespace retrograd
