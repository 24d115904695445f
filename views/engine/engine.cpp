#include "views/engine/engine.h"

#include "views/engine/present_moment.h"

namespace retrograd::views {

std::shared_ptr<const Moment> Runner::at(BoundSymbolId, const Progress&) {
  return std::make_shared<PresentMoment>(*this);
}
std::shared_ptr<const Moment> Runner::of(ValueId, const Progress&) { return std::make_shared<PresentMoment>(*this); }

}  // namespace retrograd::views
