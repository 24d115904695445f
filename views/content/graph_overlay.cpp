#include "views/content/graph_overlay.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "views/text/format.h"

namespace retrograd::views {
namespace {

constexpr int steps = OverlayColors::steps;
constexpr double mixed = -2, nothing = -1;  // amounts of Overlay::dtype and Overlay::device that are none

constexpr int mostStagesInLegend = 12;

struct OverlayWords {
  const char *title, *tip;
};

constexpr EnumArray<Overlay, OverlayWords, overlays.size()> words{{
    {"Role", "Forward, gradient, sum, recomputed"},
    {"Time", "How long each op took in the present run"},
    {"Bytes", "Memory that each op's results take"},
    {"Saved", "Kept for the backward, or recomputed in it"},
    {"Gradient", "L2 norm of the gradient of each op's result; of a group the largest of its ops"},
    {"Health", "Where NaN or Inf were seen"},
    {"Dtype", "Element type of each op's first result"},
    {"Device", "Device that each op's first result is on"},
    {"Stage", "Pipeline stages, and the bytes that cross their borders"},
}};
static_assert(std::ranges::all_of(words, [](const OverlayWords& each) { return each.title && each.tip; }));

}  // namespace

QString titleText(Overlay overlay) { return tr(words[overlay].title); }

QString toolTipText(Overlay overlay) { return tr(words[overlay].tip); }

GraphOverlay::GraphOverlay(Overlay overlay, std::shared_ptr<const layout::GraphTree> tree,
                           std::shared_ptr<const OpenDocument> document, const ExecutionState& execution,
                           const RunNumbers& numbers, std::shared_ptr<const StageCut> cut, bool dark)
    : kind_(overlay), tree_(std::move(tree)), document_(std::move(document)), colors_(dark), cut_(std::move(cut)) {
  if (kind_ == Overlay::stage) {
    if (cut_ && &cut_->document() == document_.get()) stages_ = std::make_unique<NodeStages>(*tree_, *cut_);
  } else if (kind_ != Overlay::role) {
    sumUp(execution, numbers);
    setSteps();
  }
  legend_ = makeLegend();
}

void GraphOverlay::sumUp(const ExecutionState& execution, const RunNumbers& numbers) {
  badValues_ = execution.badValues();
  badOps_ = numbers.badOps();
  badOps_.insert(execution.now().bad.begin(), execution.now().bad.end());
  const double start = kind_ == Overlay::dtype || kind_ == Overlay::device || kind_ == Overlay::gradient ? nothing : 0;
  amounts_.assign(static_cast<std::size_t>(tree_->size()), {start, start});
  for (auto i = tree_->size() - 1; i >= 0; --i) {
    const auto& node = tree_->node(i);
    auto& amount = amounts_[i];
    if (node.kind == layout::TreeNode::Kind::op) {
      auto& own = amount[node.lane];
      own = amountOf(node.op, numbers);
      if (std::isfinite(own)) most_ = std::max(most_, own);
    }
    if (node.parent < 0) continue;
    auto& above = amounts_[node.parent];
    for (auto lane : layout::bothLanes) above[lane] = joined(above[lane], amount[lane]);
  }
}

double GraphOverlay::joined(double amount, double part) const {
  if (kind_ == Overlay::gradient) return std::max(amount, part);
  if (kind_ != Overlay::dtype && kind_ != Overlay::device) return amount + part;
  if (part == nothing) return amount;
  return amount == nothing || amount == part ? part : mixed;
}

double GraphOverlay::amountOf(BoundSymbolId op, const RunNumbers& numbers) {
  const auto& document = *document_->analysis->document;
  const auto outputs = document.outputs(op);
  switch (kind_) {
    case Overlay::role:
    case Overlay::stage: return 0;
    case Overlay::time: return numbers.number(OpFigure::time, op).value_or(0);
    case Overlay::gradient: {
      if (isBackwardRole(document.boundSymbol(op).origin.role)) return nothing;
      const auto norm = numbers.number(OpFigure::gradientNorm, op).value_or(nothing);
      return std::isfinite(norm) ? norm : std::numeric_limits<double>::infinity();
    }
    case Overlay::bytes: {
      // Of storages that it does not share with what it reads.
      double bytes = 0;
      const auto operands = document.operands(op);
      for (auto output : outputs) {
        const auto storage = output ? document.value(output).storage : StorageId();
        const bool shared =
            std::ranges::any_of(operands, [&](ValueId v) { return v && document.value(v).storage == storage; });
        if (storage && !shared) bytes += static_cast<double>(document.storage(storage).bytes);
      }
      return bytes;
    }
    case Overlay::saved: {
      if (document.boundSymbol(op).origin.role == Role::recompute) return 1;
      double bytes = 0;
      for (auto output : outputs)
        if (output) bytes += static_cast<double>(document_->saved.costOf(output));
      return bytes;
    }
    case Overlay::health:
      return badOps_.contains(op) || std::ranges::any_of(outputs, [&](ValueId v) { return badValues_.contains(v); })
                 ? 1
                 : 0;
    case Overlay::dtype:
      for (auto output : outputs)
        if (output && document.isTensor(output)) return static_cast<double>(document.meta(output).dtype);
      return nothing;
    case Overlay::device:
      for (auto output : outputs) {
        if (!output || !document.isTensor(output)) continue;
        const auto device = document.meta(output).device;
        const auto place = std::ranges::find(devices_, device) - devices_.begin();
        if (static_cast<std::size_t>(place) == devices_.size()) devices_.push_back(device);
        return static_cast<double>(place);
      }
      return nothing;
  }
  return 0;
}

void GraphOverlay::setSteps() {
  // Each step is four times the one before: times and bytes of ops lie far apart. The first takes all that is less.
  for (int step = 0; step < steps; ++step) least_[step] = step == 0 ? 0 : most_ * std::pow(4.0, step - steps + 0.5);
}

int GraphOverlay::stepOf(double amount) const {
  if (amount <= 0 || most_ <= 0) return -1;
  return static_cast<int>(std::ranges::upper_bound(least_, amount) - least_.begin()) - 1;
}

QString GraphOverlay::text(std::int32_t node, layout::Lane lane) const {
  if (stages_) return stages_->text(node, lane);
  if (amounts_.empty()) return {};
  const auto amount = amounts_[node][lane];
  switch (kind_) {
    case Overlay::role:
    case Overlay::stage: return {};
    case Overlay::time: return amount > 0 ? secondsText(amount) : tr("not run");
    case Overlay::bytes: return bytesText(static_cast<std::int64_t>(amount));
    case Overlay::saved:
      if (lane == layout::Lane::backward)
        return amount > 0 ? tr("%n recomputed", nullptr, static_cast<int>(amount)) : QString();
      return amount > 0 ? tr("keeps %1").arg(bytesText(static_cast<std::int64_t>(amount))) : tr("keeps nothing");
    case Overlay::gradient:
      if (amount < 0) return lane == layout::Lane::backward ? QString() : tr("no gradient known");
      return std::isfinite(amount) ? tr("gradient %1").arg(QString::number(amount, 'g', 3)) : tr("gradient NaN/Inf");
    case Overlay::health:
      if (amount <= 0) return {};
      return amount == 1 ? tr("NaN/Inf") : tr("NaN/Inf: %1").arg(static_cast<int>(amount));
    case Overlay::dtype:
      if (amount == mixed) return tr("several dtypes");
      return amount == nothing ? tr("no tensor") : toQt(shortName(static_cast<DType>(static_cast<int>(amount))));
    case Overlay::device:
      if (amount == mixed) return tr("several devices");
      return amount == nothing ? tr("no tensor") : toQt(toString(devices_[static_cast<std::size_t>(amount)]));
  }
  return {};
}

QString GraphOverlay::edgeText(const layout::Scene& scene, std::int32_t edge) const {
  return stages_ ? stages_->edgeText(scene, edge) : QString();
}

QColor GraphOverlay::fill(std::int32_t node, layout::Lane lane) const {
  if (stages_) {
    const auto stage = stages_->only(node, lane);
    return stage >= 0 ? colors_.stage(stage) : colors_.none();
  }
  if (amounts_.empty()) return {};
  const auto amount = amounts_[node][lane];
  const auto none = colors_.none();
  switch (kind_) {
    case Overlay::role:
    case Overlay::stage: return {};
    case Overlay::gradient:
      if (std::isinf(amount)) return colors_.bad();
      [[fallthrough]];
    case Overlay::time:
    case Overlay::bytes: return stepOf(amount) < 0 ? none : colors_.ramp(stepOf(amount));
    case Overlay::saved:
      if (amount <= 0) return none;
      return lane == layout::Lane::backward ? colors_.recomputed() : colors_.ramp(stepOf(amount));
    case Overlay::health: return amount > 0 ? colors_.bad() : none;
    case Overlay::dtype:
      if (amount == mixed || amount == nothing) return none;
      return colors_.dtype(static_cast<DType>(static_cast<int>(amount)));
    case Overlay::device: return amount == mixed || amount == nothing ? none : colors_.stage(static_cast<int>(amount));
  }
  return {};
}

std::vector<GraphOverlay::Entry> GraphOverlay::makeLegend() const {
  std::vector<Entry> entries;
  const auto ramp = [&](auto&& words) {
    for (int step = 0; step < steps; ++step)
      entries.push_back({colors_.ramp(step), words(most_ / std::pow(4.0, steps - 1 - step))});
  };
  switch (kind_) {
    case Overlay::role: break;
    case Overlay::stage:
      if (!stages_) {
        entries.push_back({colors_.none(), tr("no stages: cut the model in Stages")});
        break;
      }
      for (int s = 0; s < std::min(cut_->stages(), mostStagesInLegend); ++s) {
        const auto& facts = cut_->facts[s];
        entries.push_back(
            {colors_.stage(s),
             tr("stage %1: %2, %3 of parameters").arg(s).arg(opsText(facts.ops), bytesText(facts.parameterBytes))});
      }
      if (cut_->stages() > mostStagesInLegend)
        entries.push_back({colors_.none(), tr("and %1 more").arg(cut_->stages() - mostStagesInLegend)});
      break;
    case Overlay::time:
      if (most_ > 0) ramp([](double amount) { return tr("about %1").arg(secondsText(amount)); });
      else entries.push_back({fill(0, layout::Lane::forward), tr("nothing has run yet")});
      break;
    case Overlay::gradient:
      if (most_ > 0) ramp([](double amount) { return tr("about %1").arg(QString::number(amount, 'g', 2)); });
      else entries.push_back({colors_.none(), tr("no gradient is known yet")});
      break;
    case Overlay::bytes:
    case Overlay::saved:
      ramp([](double amount) { return tr("about %1").arg(bytesText(static_cast<std::int64_t>(amount))); });
      if (kind_ == Overlay::saved) entries.push_back({colors_.recomputed(), tr("recomputed")});
      break;
    case Overlay::health:
      entries.push_back({colors_.bad(), most_ > 0 ? tr("NaN or Inf") : tr("NaN or Inf: none seen")});
      break;
    case Overlay::dtype: {
      std::set<int> present;
      for (std::int32_t i = 0; i < tree_->size(); ++i)
        for (auto amount : amounts_[i])
          if (amount >= 0) present.insert(static_cast<int>(amount));
      for (auto dtype : present)
        entries.push_back({colors_.dtype(static_cast<DType>(dtype)), toQt(shortName(static_cast<DType>(dtype)))});
      break;
    }
    case Overlay::device:
      for (std::size_t i = 0; i < devices_.size(); ++i)
        entries.push_back({colors_.stage(static_cast<int>(i)), toQt(toString(devices_[i]))});
      break;
  }
  return entries;
}

}  // namespace retrograd::views
