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
  StageCheck checkStages(const std::shared_ptr<const Analysis>& whole, const PipelineSplit&,
                         const Progress& progress) override {
    while (blocks) progress.check();
    if (fails) throw Error(ErrorCode::execution, "out of memory", "aten.mm");
    StageCheck check;
    for (const auto& input : whole->computation().inputs)
      if (input.kind == InputKind::parameter && check.rows.size() < 3)
        check.rows.push_back({StageCheckRow::Of::parameter, input.target, input.value});
    check.rows.at(1).verdict = StageVerdict::close;
    check.rows.at(1).difference = 1e-7;
    check.rows.at(1).relative = 2e-7;
    check.rows.at(1).tolerance = 1e-4;
    check.rows.at(2).verdict = wrong ? StageVerdict::differs : StageVerdict::equal;
    return check;
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
