#include "views/stages/stage_plan.h"

#include <algorithm>
#include <utility>

#include "views/engine/pipeline_engine.h"
#include "views/text/format.h"
#include "views/text/line_text.h"

namespace retrograd::views {
namespace {

const QString prepareTag = QStringLiteral("stages-prepare");
const QString measureTag = QStringLiteral("stages-measure");

std::string modulePoint(const std::string& module, bool after) { return after ? module + ":after" : module; }

bool hasMarkers(const Document& document) { return document.findSymbol("pippy._pipe_split.default").valid(); }

}  // namespace

/// One request instead of another. Numbers of stages that follow one another, with nothing else changed, are one step.
class StagePlan::Change : public QUndoCommand {
 public:
  Change(StagePlan* plan, CutRequest to, const QString& what)
      : QUndoCommand(what), plan_(plan), from_(plan->request_), to_(std::move(to)) {}
  void redo() override { plan_->setRequest(to_); }
  void undo() override {
    plan_->setRequest(from_);
    setObsolete(refused_);
  }
  int id() const override {
    auto same = to_;
    same.stages = from_.stages;
    return from_.stages > 0 && to_.stages > 0 && same == from_ ? 1 : -1;
  }
  bool mergeWith(const QUndoCommand* other) override {
    to_ = static_cast<const Change*>(other)->to_;
    return true;
  }
  /// When it is undone it leaves the history.
  void refuse() { refused_ = true; }

 private:
  StagePlan* plan_;
  CutRequest from_, to_;
  bool refused_ = false;
};

/// What a job found.
struct StagePlan::Outcome {
  std::shared_ptr<const CutBench> bench;
  std::shared_ptr<const StageCut> cut;
  QString problem;
  BoundSymbolId problemOp;
};

StagePlan::StagePlan(DocumentController* controller)
    : QObject(controller), controller_(controller), history_(controller->edits()) {
  connect(controller_, &DocumentController::documentChanged, this, &StagePlan::documentChanged);
}

void StagePlan::documentChanged() {
  const auto& document = controller_->document();
  const auto path = document ? toQt(document->request.path) : QString();
  job_.cancel();
  bench_.reset();
  measured_.reset();
  cut_.reset();
  problem_.clear();
  problemOp_ = {};
  then_ = {};
  busy_ = measuring_ = tentative_ = false;
  if (path != path_) {  // a file that is read again keeps its cuts, by name
    request_ = {};
    begun_ = false;
  }
  path_ = path;
  if (document && (begun_ || hasMarkers(*document->analysis->document))) {
    begun_ = false;
    return begin();
  }
  Q_EMIT changed();
}

void StagePlan::begin() {
  if (begun_ || !controller_->document()) return;
  begun_ = true;
  cutAnew();
}

void StagePlan::change(const CutRequest& request, const QString& what) {
  if (!controller_->document() || (begun_ && request == request_)) return;
  begun_ = true;
  tentative_ = false;
  if (request == request_) return cutAnew();
  history_.push(new Change(this, request, what));
}

void StagePlan::clear() {
  CutRequest request;
  request.options = request_.options;
  change(request, tr("Remove all cuts"));
}

bool StagePlan::isClear() const {
  CutRequest request;
  request.options = request_.options;
  return request_ == request;
}

void StagePlan::share(const std::vector<SharedParameter>& parameters, MultiUse use) {
  if (!cut_ || !noChangeReason().isEmpty()) return;
  auto request = request_;
  auto& of = request.options.multiUseOf;
  for (const auto& parameter : parameters)
    for (const auto& name : parameter.names)  // all of a tied one: stages know it by different names
      if (use == request.options.multiUse) of.erase(name);
      else of[name] = use;
  const auto what =
      parameters.size() == 1 ? toQt(parameters.front().names.front()) : tr("%1 parameters").arg(parameters.size());
  changeCut(request, use == MultiUse::transmit ? tr("Send %1").arg(what) : tr("Copy %1").arg(what));
}

void StagePlan::shareAll(MultiUse use) {
  auto request = request_;
  request.options.multiUse = use;
  request.options.multiUseOf.clear();
  change(request, tr("How parameters are shared"));
}

const std::vector<LossChoice>& StagePlan::outputs() const {
  static const std::vector<LossChoice> none;
  return bench_ ? bench_->outputs : none;
}

int StagePlan::loss() const {
  const auto& document = controller_->document();
  const auto text = document ? document->request.loss : std::string();
  const auto& all = outputs();
  const auto it = std::ranges::find_if(
      all, [&](const LossChoice& output) { return !text.empty() && (output.place == text || output.value == text); });
  return it == all.end() ? -1 : static_cast<int>(it - all.begin());
}

void StagePlan::chooseLoss(const std::string& place) {
  const auto& document = controller_->document();
  if (!document || document->request.loss == place) return;
  const auto& all = outputs();
  const auto chosen = std::ranges::find_if(all, [&](const LossChoice& output) { return output.place == place; });
  if (chosen != all.end() && !chosen->refusal.empty())
    return tell(tr("Not taken as the loss: %1").arg(toQt(chosen->refusal)), {});
  auto request = document->request;
  request.loss = place;
  controller_->reopen(request);
}

std::optional<CutRequest> StagePlan::kept() const {
  if (!begun_ || request_ == CutRequest() || (!cut_ && !busy_)) return std::nullopt;
  if (request_.stages < 2 || request_.balance != Balance::time) return request_;
  if (!cut_) return std::nullopt;
  try {
    return requestFor(*bench_, request_, places());
  } catch (const Error&) {  // a place without a name
    return std::nullopt;
  }
}

void StagePlan::restore(const CutRequest& request) {
  begun_ = true;
  setRequest(request);
}

void StagePlan::setRequest(const CutRequest& request) {
  request_ = request;
  cutAnew();
}

void StagePlan::cutAnew() {
  const auto& document = controller_->document();
  if (!document) return;
  busy_ = true;
  problem_.clear();
  problemOp_ = {};
  if (!bench_ && cutNeedsEngine(*document)) return prepare();
  if (request_.stages > 1 && request_.balance == Balance::time && !measured_) return measure();
  Q_EMIT changed();
  job_.start([this, document, bench = bench_, measured = measured_,
              request = request_](const Progress& progress) mutable -> PoolJob::Deliver {
    Outcome outcome;
    try {
      if (!bench) bench = makeCutBench(document, nullptr, progress);
      outcome.bench = bench;
      outcome.cut = cutStages(bench, measured, request, progress);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::cancelled) throw;
      outcome.problem = toQt(error.what());
      if (bench) outcome.problemOp = refusedOp(*bench->model.document, bench->model.computation, error);
    } catch (const std::bad_alloc& error) {
      outcome.problem = toQt(messageOf(error));
    }
    return [this, outcome = std::move(outcome)] { deliver(outcome); };
  });
}

void StagePlan::prepare() {
  Q_EMIT changed();
  const auto document = controller_->document();
  controller_->questions().ask(
      this, prepareTag, tr("Finding the types of ops"),
      [this, document](const QuestionContext& context, const Progress& progress) -> Worker::Deliver {
        auto made = makeCutBench(document, context.engine.pipelines(), progress);
        return [this, made = std::move(made)] {
          bench_ = made;
          cutAnew();
        };
      },
      [this](const QString& message) { fail(message.isEmpty() ? tr("Cancelled") : message); });
}

void StagePlan::measure() {
  if (measuring_ || !controller_->document()) return;
  begun_ = measuring_ = true;
  Q_EMIT changed();
  controller_->questions().ask(
      this, measureTag, tr("Measuring what ops take"),
      [this](const QuestionContext& context, const Progress& progress) -> Worker::Deliver {
        auto* engine = context.engine.pipelines();
        if (!engine) throw Error(ErrorCode::badUse, "nothing here can run the model");
        if (!context.runner) throw Error(ErrorCode::badUse, context.document.noRunReason.toStdString());
        auto costs = std::make_shared<const OpCosts>(engine->measuredCosts(context.document.analysis, progress));
        return [this, costs] {
          measured_ = costs;
          measuring_ = false;
          cutAnew();
        };
      },
      [this](const QString& message) {
        measuring_ = false;
        const auto why = message.isEmpty() ? tr("cancelled") : message;
        const auto text = tr("The ops' times were not measured: %1").arg(why);
        request_.stages > 1 && request_.balance == Balance::time ? fail(text) : tell(text, {});
      });
}

void StagePlan::deliver(const Outcome& outcome) {
  if (outcome.bench) bench_ = outcome.bench;
  if (!outcome.cut) return fail(outcome.problem, outcome.problemOp);
  busy_ = tentative_ = false;
  cut_ = outcome.cut;
  Q_EMIT changed();
  if (const auto then = std::exchange(then_, {})) then();
}

void StagePlan::fail(const QString& problem, BoundSymbolId op) {
  then_ = {};
  if (std::exchange(tentative_, false)) {
    // The change never was: it leaves the history, and what was cut before is cut again.
    newest_->refuse();
    history_.undo();
    return tell(problem, op);
  }
  busy_ = false;
  cut_.reset();
  tell(problem, op);
}

void StagePlan::tell(const QString& problem, BoundSymbolId op) {
  problem_ = problem;
  problemOp_ = op;
  Q_EMIT changed();
}

void StagePlan::undo() {
  tentative_ = false;
  history_.undo();
}

void StagePlan::redo() {
  tentative_ = false;
  history_.redo();
}

Cuts StagePlan::places() const {
  Cuts places;
  if (!cut_) return places;
  for (std::size_t s = 1; s < cut_->split.stages.size(); ++s) places.push_back(cut_->split.stages[s].begin);
  return places;
}

void StagePlan::changeCut(const CutRequest& request, const QString& what) {
  if (request == request_) return;
  tentative_ = true;
  history_.push(newest_ = new Change(this, request, what));
}

void StagePlan::changePlaces(const Cuts& places, const QString& what) {
  try {
    changeCut(requestFor(*bench_, request_, places), what);
  } catch (const Error& error) {
    tell(toQt(error.what()), {});
  }
}

QString StagePlan::noChangeReason() const {
  if (!controller_->document()) return tr("No file is open");
  if (busy_) return tr("The model is being cut");
  return cut_ || problem_.isEmpty() ? QString() : tr("The cuts asked for are refused: see Stages");
}

QString StagePlan::noCutReason(BoundSymbolId op, bool after) const {
  if (const auto reason = noChangeReason(); !reason.isEmpty()) return reason;
  if (!op) return tr("No op is selected");
  if (!cut_) return {};
  const auto at = cut_->position(op);
  if (at < 0) return tr("This op comes from no op of the computation");
  const auto place = static_cast<std::size_t>(at) + (after ? 1 : 0);
  if (place == 0) return tr("Nothing comes before the first op");
  if (place >= cut_->ops().size()) return tr("Nothing comes after the last op");
  const auto cut = places();
  return std::ranges::find(cut, place) == cut.end() ? QString() : tr("A stage begins here already");
}

QString StagePlan::noCutReason(const std::string& module, bool after) const {
  if (const auto reason = noChangeReason(); !reason.isEmpty()) return reason;
  if (module.empty()) return tr("This op is in no module");
  if (!cut_) return {};
  try {
    return placesOf(modulePoint(module, after)).empty()
               ? tr("A stage begins here already, or there is nothing on one side of this cut")
               : QString();
  } catch (const Error& error) {
    return toQt(error.what());
  }
}

QString StagePlan::noRemoveReason(BoundSymbolId op) const {
  if (!controller_->document()) return tr("No file is open");
  if (!hasMarks()) return tr("The model is not cut");
  if (busy_) return tr("The model is being cut");
  if (!op) return tr("No op is selected");
  const int stage = cut_->stageOf(op);
  return stage < 0 ? tr("This op is in no stage") : stage == 0 ? tr("The first stage has no cut before it") : QString();
}

void StagePlan::cutAt(BoundSymbolId op, bool after) {
  if (!noCutReason(op, after).isEmpty()) return;
  if (!cut_) {
    then_ = [this, op, after] { cutAt(op, after); };
    return begin();
  }
  const auto at = static_cast<std::size_t>(cut_->position(op));
  const auto place = at + (after ? 1 : 0);
  const auto name = operationName(cut_->tables(), cut_->ops()[at]);
  const auto what = after ? tr("Cut after %1").arg(name) : tr("Cut before %1").arg(name);
  auto all = places();
  all.insert(std::ranges::upper_bound(all, place), place);
  if (request_.stages > 0) return changePlaces(all, what);
  try {
    auto request = request_;  // points add to markers
    request.at.push_back(bench_->points.at(place));
    changeCut(request, what);
  } catch (const Error& error) {
    tell(toQt(error.what()), {});
  }
}

Cuts StagePlan::placesOf(const std::string& point) const {
  const auto& model = bench_->model;
  Cuts added;
  const auto all = places();
  for (auto place : cutsAt(*model.document, model.computation, {point}, bench_->calls))
    if (place > 0 && place < cut_->ops().size() && !std::ranges::binary_search(all, place)) added.push_back(place);
  return added;
}

void StagePlan::cutAtModule(const std::string& module, bool after) {
  if (!noCutReason(module, after).isEmpty()) return;
  if (!cut_) {
    then_ = [this, module, after] { cutAtModule(module, after); };
    return begin();
  }
  const auto point = modulePoint(module, after);
  const auto what = after ? tr("Cut after %1").arg(toQt(module)) : tr("Cut before %1").arg(toQt(module));
  if (request_.stages > 0) {
    auto all = places();
    for (auto place : placesOf(point)) all.insert(std::ranges::upper_bound(all, place), place);
    return changePlaces(all, what);
  }
  auto request = request_;
  request.at.push_back(point);
  changeCut(request, what);
}

void StagePlan::removeCut(BoundSymbolId op) {
  if (!noRemoveReason(op).isEmpty()) return;
  const int stage = cut_->stageOf(op);
  auto all = places();
  all.erase(all.begin() + stage - 1);
  changePlaces(all, tr("Join stages %1 and %2").arg(stage - 1).arg(stage));
}

bool StagePlan::canMoveCut(int stage, std::size_t position) const {
  if (busy_ || !cut_ || stage < 1 || stage >= cut_->stages()) return false;
  const auto all = places();
  const auto index = static_cast<std::size_t>(stage - 1);
  const auto least = index == 0 ? 0 : all[index - 1],
             most = index + 1 < all.size() ? all[index + 1] : cut_->ops().size();
  return position > least && position < most && position != all[index];
}

void StagePlan::moveCut(int stage, std::size_t position) {
  if (!canMoveCut(stage, position)) return;
  auto all = places();
  all[stage - 1] = position;
  changePlaces(all, tr("Move the cut before stage %1").arg(stage));
}

}  // namespace retrograd::views
