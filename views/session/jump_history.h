#pragma once
#include <QObject>
#include <vector>

#include "core/base/ids.h"

namespace retrograd::views {

/// Jumps only, not every selection: where one came from and where one went, walked with back() and forward().
class JumpHistory : public QObject {
  Q_OBJECT

 public:
  using QObject::QObject;

  void clear();
  /// Notes a jump; what lay ahead after a back() is forgotten.
  void jumped(BoundSymbolId from, BoundSymbolId to);
  bool canGoBack() const { return at_ > 0; }
  bool canGoForward() const { return at_ + 1 < places_.size(); }
  /// All places, the oldest first, and which of them one is at (0 where there are none).
  const std::vector<BoundSymbolId>& places() const { return places_; }
  std::size_t at() const { return at_; }
  /// Moves and returns the place; invalid where there is none. `present` replaces the place that is left, so that a way
  /// back leads to where one really was.
  BoundSymbolId back(BoundSymbolId present);
  BoundSymbolId forward(BoundSymbolId present);
  /// To any of places(), as if by as many steps; invalid where there is no such place.
  BoundSymbolId goTo(std::size_t place, BoundSymbolId present);

  /// Notes that `to` was reached from `from` by the origin key; pressing it again at `to` leads back.
  void originJumped(BoundSymbolId from, BoundSymbolId to);
  /// The place the origin key came from, if it led to `at`; invalid otherwise.
  BoundSymbolId returnFrom(BoundSymbolId at) const { return at == originTo_ ? originFrom_ : BoundSymbolId(); }

 Q_SIGNALS:
  void changed();

 private:
  std::vector<BoundSymbolId> places_;
  std::size_t at_ = 0;
  BoundSymbolId originFrom_, originTo_;
};

}  // namespace retrograd::views
