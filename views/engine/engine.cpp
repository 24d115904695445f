#include "views/engine/engine.h"

namespace retrograd::views {
namespace {

/// What a runner holds at its present position, as the moment of whatever op: for runners that know no other.
class PresentMoment : public Moment {
 public:
  explicit PresentMoment(const Runner& runner) : runner_(runner) {}
  bool writes(ValueId) const override { return false; }
  ValueState state(ValueId value, Side) const override { return runner_.state(value); }
  TensorStatistics statistics(ValueId value, Side) const override { return runner_.statistics(value); }
  TensorData contents(ValueId value, Side) const override { return runner_.contents(value); }
  std::vector<std::int64_t> histogram(ValueId value, Side, int bins) const override {
    return runner_.histogram(value, bins);
  }

 private:
  const Runner& runner_;
};

}  // namespace

std::shared_ptr<const Moment> Runner::at(BoundSymbolId, const Progress&) {
  return std::make_shared<PresentMoment>(*this);
}
std::shared_ptr<const Moment> Runner::of(ValueId, const Progress&) { return std::make_shared<PresentMoment>(*this); }

}  // namespace retrograd::views
