#pragma once
#include <QDockWidget>
#include <QLabel>

#include "tests/views/window_fixture.h"
#include "views/engine/pipeline_engine.h"
#include "views/stages/stage_plan.h"

namespace retrograd::views {

/// Every op takes a millisecond forwards and two backwards.
class FakePipelines : public PipelineEngine {
 public:
  OpCosts measuredCosts(const std::shared_ptr<const Analysis>& whole, const Progress& progress) override {
    ++measured;
    while (blocks) progress.check();
    if (fails) throw Error(ErrorCode::execution, "out of memory", "aten.mm");
    OpCosts costs(whole->computation().trace.ops.size());
    std::fill(costs.forward.begin(), costs.forward.end(), 1e-3);
    std::fill(costs.backward.begin(), costs.backward.end(), 2e-3);
    return costs;
  }
  /// The first parameter is as it should be, the second nearly, the third is not; of the rest nothing is known.
  Report checkStages(const std::shared_ptr<const Analysis>& whole, const PipelineSplit&,
                     const Progress& progress) override {
    while (blocks) progress.check();
    if (fails) throw Error(ErrorCode::execution, "out of memory", "aten.mm");
    std::vector<Measure> measures{{}, {1e-7, 1e-4, 0.5}, wrong ? Measure::failed("the stages give none") : Measure()};
    Report report{.judged = 3, .due = 3, .unit = "tensor", .notes = {"2 of 3 tensors are bit for bit the model's"}};
    for (const auto& input : whole->computation().inputs) {
      if (input.kind != InputKind::parameter || report.claims.size() == 3) continue;
      auto claim = claimOf(Producer::stages, "grad.p." + input.target, measures[report.claims.size()]);
      claim.kind = parameterGradient;
      claim.value = input.value;
      report.claims.push_back(std::move(claim));
    }
    worstFirst(report.claims);
    return report;
  }
  void writeStages(const std::shared_ptr<const Analysis>&, const PipelineSplit&, const std::vector<std::string>&,
                   const std::string&, const Progress&) override {}
  void completeTypes(ModelFile&, const Analysis&) override { throw Error(ErrorCode::internal, "not a text"); }

  std::atomic<int> measured = 0;
  std::atomic<bool> blocks = false;
  bool fails = false, wrong = true;
};

class StagesEngine : public FakeEngine {
 public:
  PipelineEngine* pipelines() override { return &fake; }
  FakePipelines fake;
};

inline StagePlan& plan(WindowFixture& f) { return *f.window().context().stages; }
inline const StageCut& cut(WindowFixture& f) { return *plan(f).cut(); }
inline bool settled(WindowFixture& f) {
  return QTest::qWaitFor([&] { return !plan(f).busy() && !plan(f).measuring(); }, 10000);
}
inline Cuts begins(WindowFixture& f) {
  Cuts all;
  for (const auto& stage : cut(f).split.stages) all.push_back(stage.begin);
  return all;
}

template <class Widget>
Widget* find(WindowFixture& f, const char* name) {
  auto* found = f.window().findChild<Widget*>(QLatin1String(name));
  Q_ASSERT(found);
  return found;
}

/// Opens a file with this many layers (two ops each) and shows the dock.
inline std::unique_ptr<WindowFixture> opened(
    const char* path = "synthetic:4", const std::shared_ptr<StagesEngine>& engine = std::make_shared<StagesEngine>()) {
  auto f = std::make_unique<WindowFixture>(engine);
  if (!f->open(QLatin1String(path))) return nullptr;
  f->raise("dock-stages");
  return settled(*f) ? std::move(f) : nullptr;
}

inline CutRequest equal(std::size_t stages, Balance balance = Balance::parameters) {
  CutRequest request;
  request.stages = stages;
  request.balance = balance;
  return request;
}

inline bool ask(WindowFixture& f, const CutRequest& request) {
  plan(f).change(request, QStringLiteral("test"));
  return settled(f);
}

inline QAction* action(WindowFixture& f, const char* name) { return find<QAction>(f, name); }
inline QString message(WindowFixture& f) { return find<QLabel>(f, "stages-message")->text(); }
inline BoundSymbolId op(WindowFixture& f, std::size_t position) {
  return f.analysis().computation().trace.ops.at(position);
}

}  // namespace retrograd::views
