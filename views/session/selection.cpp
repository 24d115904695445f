#include "views/session/selection.h"

#include "views/text/trace_index.h"

namespace retrograd::views {

void Selection::reset(std::shared_ptr<const Analysis> analysis) {
  analysis_ = std::move(analysis);
  op_ = {};
  value_ = {};
  way_.clear();
  relate();
  Q_EMIT changed();
}

ValueId Selection::chosenValue() const {
  if (value_ || !op_ || !analysis_) return value_;
  for (auto output : analysis_->document->outputs(op_))
    if (output) return output;
  return {};
}

void Selection::select(BoundSymbolId op, ValueId value) {
  if (!analysis_ || (op == op_ && value == value_)) return;
  op_ = op;
  value_ = value;
  relate();
  Q_EMIT changed();
}

void Selection::selectValue(ValueId value) {
  if (value == value_) return;
  value_ = value;
  Q_EMIT changed();
}

void Selection::setWay(const std::vector<BoundSymbolId>& ops) {
  way_.clear();
  if (!analysis_) return;
  for (auto op : ops) {
    if (!op) continue;
    way_.insert(op);
    if (const auto origin = OriginLinks::origin(*analysis_->document, op)) way_.insert(origin);
  }
  Q_EMIT changed();
}

Relation Selection::relation(BoundSymbolId op) const {
  const auto it = relations_.find(op);
  if (it != relations_.end() && it->second != Relation::sibling) return it->second;
  if (way_.contains(op)) return Relation::way;
  return it == relations_.end() ? Relation::none : it->second;
}

void Selection::relate() {
  relations_.clear();
  origin_ = {};
  if (!analysis_ || !op_) return;
  const auto& document = *analysis_->document;
  const bool fromBackward = isBackwardRole(document.boundSymbol(op_).origin.role);
  origin_ = OriginLinks::origin(document, op_);
  if (origin_) {
    // A computation op and its forward ops are one thing in two levels: for a forward op both are shown as siblings.
    relations_[origin_] = fromBackward ? Relation::origin : Relation::sibling;
    for (auto op : analysis_->links.derived(origin_)) {
      const bool backward = isBackwardRole(document.boundSymbol(op).origin.role);
      relations_[op] = backward == fromBackward ? Relation::sibling : backward ? Relation::derived : Relation::origin;
    }
  }
  relations_[op_] = Relation::selected;
}

}  // namespace retrograd::views
