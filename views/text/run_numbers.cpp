#include "views/text/run_numbers.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/derivation/gradient_of.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

QString timeText(double seconds) {
  return seconds < 1e-3 ? tr("%1 \u00b5s").arg(seconds * 1e6, 0, 'f', 1)
         : seconds < 1  ? tr("%1 ms").arg(seconds * 1e3, 0, 'f', 2)
                        : tr("%1 s").arg(seconds, 0, 'f', 2);
}

QString countText(double number) {
  return number > 0 ? QStringLiteral("! ") + QString::number(number, 'f', 0) : QStringLiteral("0");
}

double normOf(const TensorStatistics& of) { return of.norm; }

}  // namespace

const EnumArray<OpFigure, FigureColumn, figureCount>& figureColumns() {
  const auto plain = [](double number) { return numberText(number); };
  static const EnumArray<OpFigure, FigureColumn, figureCount> all{
      {{OpFigure::none, "none", "None", "No number", 0, false, false, [](double) { return QString(); }},
       {OpFigure::time, "time", "Time", "How long the op took", 76, true, true, timeText,
        [](const OpMeasure& of) { return of.seconds; }},
       {OpFigure::bytes, "bytes", "Bytes", "What the op allocated", 76, true, true,
        [](double number) { return bytesText(static_cast<std::int64_t>(number)); },
        [](const OpMeasure& of) { return static_cast<double>(of.outputBytes); }},
       {OpFigure::norm, "norm", "L2 Norm", "Of what the op made; where that has NaN or Inf, how many", 76, false, false,
        plain, nullptr, normOf},
       {OpFigure::greatest, "max", "Max |x|", "The greatest absolute value of what the op made", 76, false, false,
        plain, nullptr, [](const TensorStatistics& of) { return std::max(std::abs(of.min), std::abs(of.max)); }},
       {OpFigure::bad, "bad", "NaN and Inf", "In what the op made, but for infinities that the model means", 100, true,
        false, countText},
       {OpFigure::gradientNorm, "gradient", "Gradient Norm", "L2 norm of the gradient of what the op made", 100, false,
        false, plain, nullptr, normOf, true}}};
  return all;
}

void RunNumbers::reset(std::shared_ptr<const Analysis> analysis, std::shared_ptr<const OpPositions> positions,
                       IntendedInfinities intended) {
  analysis_ = std::move(analysis);
  intended_ = std::move(intended);
  measures_.clear();
  positions_ = std::move(positions);
  statistics_.clear();
  scales_.clear();
  gradients_.clear();
  firstBad_ = failed_ = {};
  failure_.clear();
  badOps_.clear();
  if (analysis_) measures_.reserve(size());  // to move half a million while they grow takes longer than an event may
  Q_EMIT changed();
}

void RunNumbers::add(const RunNews& news) {
  if (!analysis_ || news.begin > known() || news.end > size()) return;
  const auto& document = *analysis_->document;
  const auto& ops = analysis_->joint.ops;
  for (auto i = news.begin; i < known(); ++i)
    for (auto output : document.outputs(ops[i]))
      if (output && statistics(output)) slot(output).reset();
  if (firstBad_ && std::cmp_greater_equal((*positions_)[firstBad_], news.begin)) firstBad_ = {};
  // It is out of date where it ran after all, or what came before it is; news of nothing change nothing.
  if (failed_ && (std::cmp_less((*positions_)[failed_], news.end) || news.begin < known())) failed_ = {};
  measures_.resize(news.begin);
  measures_.insert(measures_.end(), news.measures.begin(), news.measures.end());
  for (const auto& [value, statistics] : news.values) slot(value) = statistics;
  for (auto i = news.begin; i < news.end && !firstBad_; ++i)
    if (isBad(ops[i])) firstBad_ = ops[i];
  const auto before = badOps_.size();
  const bool dropped = std::erase_if(badOps_, [&](BoundSymbolId op) {
                         return std::cmp_greater_equal((*positions_)[op], news.begin);
                       }) > 0;
  for (auto i = news.begin; i < news.end; ++i)
    if (isBad(ops[i])) badOps_.insert(ops[i]);
  scales_.clear();
  if (dropped || badOps_.size() != before) Q_EMIT badOpsChanged();
  Q_EMIT changed();
}

void RunNumbers::setFailed(BoundSymbolId op, const QString& why) {
  failed_ = op;
  failure_ = why;
  Q_EMIT changed();
}

const TensorStatistics* RunNumbers::statistics(ValueId value) const {
  if (!value || value.index >= std::ssize(statistics_) * std::int64_t{blockSize}) return nullptr;
  const auto& block = statistics_[static_cast<std::size_t>(value.index / blockSize)];
  const auto* statistics = block ? &(*block)[static_cast<std::size_t>(value.index % blockSize)] : nullptr;
  return statistics && *statistics ? &**statistics : nullptr;
}

std::optional<TensorStatistics>& RunNumbers::slot(ValueId value) {
  const auto at = static_cast<std::size_t>(value.index / blockSize);
  if (at >= statistics_.size()) statistics_.resize(analysis_->document->valueCount() / blockSize + 1);
  if (!statistics_[at]) statistics_[at] = std::make_unique<Block>();
  return (*statistics_[at])[static_cast<std::size_t>(value.index % blockSize)];
}

bool RunNumbers::isBad(BoundSymbolId op) const {
  const auto number = ownNumber(OpFigure::bad, op);
  return number && *number > 0 && !leavesUninitialised(*analysis_->document, op);
}

std::optional<double> RunNumbers::number(OpFigure kind, BoundSymbolId op) const {
  if (kind == OpFigure::none || !analysis_ || !positions_->contains(op)) return std::nullopt;
  if ((*positions_)[op] >= 0 || !figureColumns()[kind].ofRun) return ownNumber(kind, op);
  std::optional<double> sum;
  for (auto derived : analysis_->links.derived(op))
    if (analysis_->document->boundSymbol(derived).origin.role == Role::forward)
      if (const auto one = ownNumber(kind, derived)) sum = sum.value_or(0) + *one;
  return sum;
}

std::optional<std::size_t> RunNumbers::madeAt(OpFigure kind, BoundSymbolId op) const {
  if (!analysis_ || !positions_->contains(op)) return std::nullopt;
  const auto& document = *analysis_->document;
  auto last = (*positions_)[op];
  if (figureColumns()[kind].isOfGradient) {
    last = -1;
    for (auto output : document.outputs(op))
      if (const auto gradient = output ? gradientOf(output) : ValueId(); gradient && statistics(gradient))
        if (const auto maker = document.value(gradient).producer; maker) last = std::max(last, (*positions_)[maker]);
  } else if (last < 0) {
    for (auto derived : analysis_->links.derived(op))
      if (document.boundSymbol(derived).origin.role == Role::forward) last = std::max(last, (*positions_)[derived]);
  }
  return last < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(last));
}

std::optional<double> RunNumbers::ownNumber(OpFigure kind, BoundSymbolId op) const {
  if (!analysis_ || !positions_->contains(op)) return std::nullopt;
  const auto position = (*positions_)[op];
  const auto& figure = figureColumns()[kind];
  if (figure.ofRun) {
    if (position < 0 || std::cmp_greater_equal(position, known())) return std::nullopt;
    return figure.ofRun(measures_[position]);
  }
  std::optional<double> bad;
  for (auto output : analysis_->document->outputs(op)) {
    const auto value = figure.isOfGradient && output ? gradientOf(output) : output;
    const auto* s = statistics(value);
    if (!s) continue;
    if (figure.ofValue) return figure.ofValue(*s);
    bad = bad.value_or(0) + (intended_.isFault(output, *s) ? static_cast<double>(s->nan + s->inf) : 0);
  }
  return bad;
}

// To look for each in the trace would take minutes for 100,000 ops.
ValueId RunNumbers::gradientOf(ValueId value) const {
  if (gradients_.empty()) gradients_ = gradientsOfValues(*analysis_);
  return gradients_.contains(value) ? gradients_[value] : ValueId();
}

double RunNumbers::scale(OpFigure kind) const {
  constexpr std::size_t sample = 20'000;
  const auto [scale, isNew] = scales_.try_emplace(kind, 0);
  if (!isNew) return scale->second;
  std::vector<double> all;
  const auto each = std::max<std::size_t>(1, size() / sample);
  for (std::size_t i = 0; i < size(); i += each)
    if (const auto one = ownNumber(kind, analysis_->joint.ops[i]); one && *one > 0 && std::isfinite(*one))
      all.push_back(*one);
  if (all.empty()) return 0;
  const auto beyond = static_cast<std::ptrdiff_t>(all.size() / 100);
  std::nth_element(all.begin(), all.begin() + beyond, all.end(), std::greater());
  return scale->second = all[beyond];
}

QString numberText(OpFigure kind, std::optional<double> number) {
  return number ? figureColumns()[kind].text(*number) : QString();
}

QString titleOf(OpFigure kind) { return tr(figureColumns()[kind].title); }

}  // namespace retrograd::views
