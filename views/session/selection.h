#pragma once
#include <QObject>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/derivation/analysis.h"

namespace retrograd::views {

/// How a line relates to the selected op.
enum class Relation : std::uint8_t {
  none,
  selected,
  origin,   ///< the selected op comes from it: its computation op and that op's forward ops
  derived,  ///< a backward op that comes from the selected forward op
  sibling,  ///< comes from the same computation op in the same direction
  way       ///< is on the way that the user asked for, from a root to a bad value
};

/// The op and the value that the user looks at; one for all views, which subscribe and never call each other.
class Selection : public QObject {
  Q_OBJECT

 public:
  using QObject::QObject;

  /// Forgets the selection; later ones are of this analysis (may be null).
  void reset(std::shared_ptr<const Analysis> analysis);
  /// Selects an op; an invalid id selects nothing. The value is dropped unless given.
  virtual void select(BoundSymbolId op, ValueId value = {});
  virtual void selectValue(ValueId value);
  /// Lights the ops of a way, and the computation ops that they come from, until there is another way or document.
  void setWay(const std::vector<BoundSymbolId>& ops);

  BoundSymbolId op() const { return op_; }
  ValueId value() const { return value_; }
  /// The value that a command is for: the selected one, else what the selected op makes first; may be invalid.
  ValueId chosenValue() const;
  /// How `op` relates to the selected one, in O(1).
  Relation relation(BoundSymbolId op) const;
  /// The computation op that the selected one comes from (itself for a computation op); may be invalid.
  BoundSymbolId origin() const { return origin_; }
  const std::shared_ptr<const Analysis>& analysis() const { return analysis_; }

 Q_SIGNALS:
  void changed();

 private:
  void relate();

  std::shared_ptr<const Analysis> analysis_;
  BoundSymbolId op_, origin_;
  ValueId value_;
  std::unordered_map<BoundSymbolId, Relation> relations_;
  std::unordered_set<BoundSymbolId> way_;
};

}  // namespace retrograd::views
