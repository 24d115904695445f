#include "views/engine/engine.h"
#include "views/engine/versions.h"

namespace retrograd::views {
namespace {

/// Stands in for LibTorch in a build without it.
class NoEngine : public Engine {
 public:
  std::shared_ptr<const Analysis> open(const OpenRequest& request, const Progress&, const OnRead&) override {
    throw Error(ErrorCode::badUse, "this build has no LibTorch and opens no models", request.path);
  }
  std::unique_ptr<Runner> run(std::shared_ptr<const Analysis>) override { refuse(); }
  RunRecord record(const Analysis&, const std::map<ValueId, double>&, const Progress&) override { refuse(); }
  WhatIf whatIf(const Analysis&, const PartitionOptions&, const std::vector<OpMeasure>&, const Progress&) override {
    refuse();
  }
  GradientCheck checkGradients(const Analysis&, const std::vector<BoundSymbolId>&, const Progress&) override {
    refuse();
  }
  AllocatorPeak measureMemory(const std::shared_ptr<const Analysis>&, const Progress&) override { refuse(); }
  RunComparison compare(const Analysis&, const Counterpart&, double, const Progress&) override { refuse(); }

 private:
  [[noreturn]] static void refuse() { throw Error(ErrorCode::badUse, "this build has no LibTorch"); }
};

}  // namespace

std::string engineVersion() { return {}; }

// NOLINTNEXTLINE(performance-unnecessary-value-param): the engine of a whole build keeps it
std::shared_ptr<Engine> liveEngine(std::shared_ptr<const RuleRegistry>) { return std::make_shared<NoEngine>(); }

}  // namespace retrograd::views
