#include "views/content/diff_rows.h"
#include "core/base/enum_array.h"

#include <algorithm>

#include "core/questions/align_ops.h"
#include "core/trace/diff/alignment.h"
#include "core/trace/diff/diff_text.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

using Kind = DiffRow::Kind;

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

QString arrows(const std::string& text) {
  return toQt(text).replace(QLatin1String(" -> "), QStringLiteral(" \u2192 "));
}

}  // namespace

DiffSide ComparedTrace::side() const {
  auto side = diffSide(*analysis, *trace);
  if (passes) side.joint = nullptr;  // the joint of a pass's trace is that trace itself
  return side;
}

std::shared_ptr<const Comparison> compareTraces(ComparedTrace left, ComparedTrace right, const Progress& progress) {
  auto comparison = std::make_shared<Comparison>();
  comparison->left = std::move(left);
  comparison->right = std::move(right);
  comparison->diff = diffTraces(comparison->left.side(), comparison->right.side(), progress);
  for (auto side : bothSides) {
    const auto& document = *comparison->of(side).analysis->document;
    const auto& marks = comparison->diff.kept[side];
    std::vector<ValueId> kept;
    for (std::size_t i = 0; i < marks.size(); ++i)
      if (marks[ValueId(i)]) kept.emplace_back(i);
    comparison->saved[side] = savedValues(document, kept, comparison->of(side).side().trace->ops);
  }
  return comparison;
}

DiffRows::DiffRows(std::shared_ptr<const Comparison> comparison, bool onlyDifferences)
    : comparison_(std::move(comparison)), onlyDifferences_(onlyDifferences) {
  if (!comparison_) return;
  const auto& diff = comparison_->diff;
  for (auto side : bothSides) rowOfOp_[side].assign(comparison_->of(side).analysis->document->boundSymbolCount(), -1);
  for (std::size_t i = 0; i < diff.rows.size(); ++i)
    for (auto side : bothSides)
      if (const auto& row = diff.rows[i]; side == Side::left ? row.showsLeft() : row.showsRight())
        if (const auto op = diff.op(row, side)) rowOfOp_[side][at(op.index)] = static_cast<std::int32_t>(i);
  showOnlyDifferences(onlyDifferences);
}

void DiffRows::showOnlyDifferences(bool on) {
  onlyDifferences_ = on;
  if (!comparison_) return;
  shown_.assign(comparison_->diff.rows.size(), !on);
  if (on)
    for (const auto& [begin, end] : hunksOf(comparison_->diff, context))
      std::fill(shown_.begin() + begin, shown_.begin() + end, std::uint8_t{1});
  // One row more is no longer than the row that would stand for it.
  for (std::size_t i = 0; i < shown_.size(); ++i)
    if (!shown_[i] && (i == 0 || shown_[i - 1]) && (i + 1 == shown_.size() || shown_[i + 1])) shown_[i] = 1;
  rebuild();
}

void DiffRows::unfold(int visible) {
  const auto begin = begins_[visible];
  std::fill_n(shown_.begin() + begin, folded(visible), std::uint8_t{1});
  rebuild();
}

void DiffRows::rebuild() {
  begins_.clear();
  blocks_.clear();
  const auto& rows = comparison_->diff.rows;
  visibleOf_.assign(rows.size(), -1);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (shown_[i] || i == 0 || shown_[i - 1]) begins_.push_back(static_cast<std::int32_t>(i));
    visibleOf_[i] = count() - 1;
    if (rows[i].kind != Kind::same && (i == 0 || rows[i - 1].kind == Kind::same)) blocks_.push_back(count() - 1);
  }
}

int DiffRows::folded(int visible) const {
  const auto begin = begins_[visible];
  if (shown_[at(begin)]) return 1;
  const auto end = visible + 1 < count() ? begins_[static_cast<std::size_t>(visible) + 1]
                                         : static_cast<std::int32_t>(visibleOf_.size());
  return end - begin;
}

int DiffRows::rowOf(Side side, BoundSymbolId op) const {
  const auto& rows = rowOfOp_[side];
  const auto row = op && at(op.index) < rows.size() ? rows[at(op.index)] : -1;
  return row < 0 ? -1 : visibleOf_[at(row)];
}

BoundSymbolId DiffRows::opAt(int visible, Side side) const {
  if (visible < 0 || visible >= count() || folded(visible) > 1) return {};
  const auto& one = row(visible);
  return (side == Side::left ? one.showsLeft() : one.showsRight()) ? comparison_->diff.op(one, side) : BoundSymbolId();
}

int DiffRows::nextBlock(int visible, bool forward) const {
  if (forward) {
    const auto next = std::ranges::upper_bound(blocks_, visible);
    return next == blocks_.end() ? -1 : *next;
  }
  const auto here = std::ranges::lower_bound(blocks_, visible);
  return here == blocks_.begin() ? -1 : *(here - 1);
}

int DiffRows::blockAt(int visible) const {
  return static_cast<int>(std::ranges::upper_bound(blocks_, visible) - blocks_.begin()) - 1;
}

LineText DiffRows::line(int visible, Side side) const {
  const auto& one = row(visible);
  if (folded(visible) > 1 || !(side == Side::left ? one.showsLeft() : one.showsRight())) return {};
  if (const auto op = comparison_->diff.op(one, side))
    return lineOf(*comparison_->of(side).analysis->document, op, &comparison_->saved[side], true);
  LineText line;
  const auto what = one.part == DiffRow::Part::input ? tr("input ") : QString();
  line.add(what + toQt(diffLine(comparison_->diff, one, side)), TokenKind::plain);
  return line;
}

std::vector<bool> DiffRows::changedTokens(int visible, Side side) const {
  const auto& one = row(visible);
  if (one.left < 0 || one.right < 0 || one.changes == 0) return {};
  // Values are known by their ids on the left, all else by its text.
  std::map<QString, std::int32_t> texts;
  const auto& pairs = *comparison_->diff.pairs;
  EnumArray<Side, std::vector<std::int32_t>, 2> tokens;
  for (auto which : bothSides) {
    LineText line;
    if (const auto op = comparison_->diff.op(one, which))
      line = lineOf(*comparison_->of(which).analysis->document, op, &comparison_->saved[which], true);
    else line = this->line(visible, which);
    for (const auto& token : line.tokens) {
      const auto value = which == Side::left || !token.value ? token.value : pairs.partner(Side::right, token.value);
      const bool known = value && (which == Side::left || pairs.same(value, token.value));
      const auto text = line.text.mid(token.begin, token.length);
      const auto number =
          static_cast<std::int32_t>(texts
                                        .try_emplace(known ? QStringLiteral("value %1").arg(value.index) : text,
                                                     static_cast<std::int32_t>(texts.size()))
                                        .first->second);
      tokens[which].push_back(number);
    }
  }
  std::vector<bool> changed(tokens[side].size(), true);
  for (const auto& [left, right] : alignTokens(tokens[Side::left], tokens[Side::right]))
    changed[at(side == Side::left ? left : right)] = false;
  return changed;
}

int DiffRows::depth(int visible, Side side) const {
  const auto& one = row(visible);
  if (one.part != DiffRow::Part::op || !(side == Side::left ? one.showsLeft() : one.showsRight())) return 0;
  return comparison_->diff.lines(side).depth[at(side == Side::left ? one.left : one.right)];
}

QString DiffRows::sign(Kind kind) {
  switch (kind) {
    case Kind::same: return {};
    case Kind::changed: return QStringLiteral("~");
    case Kind::onlyLeft: return QStringLiteral("\u2212");
    case Kind::onlyRight: return QStringLiteral("+");
    case Kind::movedAway:
    case Kind::movedHere: return QStringLiteral("\u21c5");
  }
  return {};
}

QString DiffRows::explanation(int visible) const {
  if (const auto rows = folded(visible); rows > 1) return tr("%n equal rows", nullptr, rows);
  const auto& one = row(visible);
  QStringList parts;
  if (one.kind == Kind::onlyLeft) parts << tr("only on the left");
  if (one.kind == Kind::onlyRight) parts << tr("only on the right");
  for (const auto& text : describeChanges(comparison_->diff, one)) parts << arrows(text);
  return parts.join(QStringLiteral("  \u00b7  "));
}

QString DiffRows::spoken(int visible) const {
  if (visible < 0 || visible >= count()) return {};
  auto what = explanation(visible);
  if (folded(visible) > 1) return what;
  const auto& one = row(visible);
  const auto text = line(visible, one.showsLeft() ? Side::left : Side::right).text;
  if (one.kind == Kind::same) return tr("equal: %1").arg(text);
  if (one.kind == Kind::changed) return tr("changed: %1; %2; now %3").arg(what, text, line(visible, Side::right).text);
  return QStringLiteral("%1: %2").arg(what, text);
}

}  // namespace retrograd::views
