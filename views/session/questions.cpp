#include "views/session/questions.h"

#include <QPointer>

#include "core/formats/safetensors/npy.h"
#include "core/formats/safetensors/safetensors.h"

namespace retrograd::views {
namespace {

const QString valuesTag = QStringLiteral("values");

}  // namespace

Questions::Questions(OpenState& state, QObject* parent) : QObject(parent), state_(state) {}

void Questions::ask(QObject* asker, const QString& tag, const QString& title, Question question,
                    std::function<void(const QString&)> failed) {
  if (state_.document && !title.isEmpty()) titled_.insert(tag);
  post(asker, tag, title, std::move(question), std::move(failed));
}

void Questions::post(QObject* asker, const QString& tag, const QString& title, Question question,
                     std::function<void(const QString&)> failed) {
  if (!state_.document || !state_.slot) return;
  const auto tellAsking = [this, tag] {
    if (titled_.contains(tag)) Q_EMIT askingChanged();
  };
  // What comes of a question that was replaced may be on its way already: its answer, or that it was cancelled.
  const auto isHeard = [this, asker = QPointer<QObject>(asker), slot = state_.slot, isNewest = newest(tag)] {
    return slot == state_.slot && asker && isNewest();
  };
  const auto work = [isHeard, tellAsking, slot = state_.slot, engine = state_.engine, document = state_.document,
                     question = std::move(question)](const Progress& progress) -> Worker::Deliver {
    auto answer = question({*document, *engine, slot->runner.get()}, progress);
    return [isHeard, tellAsking, answer] {
      tellAsking();
      if (answer && isHeard()) answer();
    };
  };
  const auto giveUp = [isHeard, tellAsking, failed = std::move(failed)](const Error& error) {
    tellAsking();
    if (failed && isHeard())
      failed(error.code() == ErrorCode::cancelled ? QString() : QString::fromStdString(error.what()));
  };
  state_.worker->post(state_.owner,
                      {.tag = tag, .title = title, .replaceRunning = true, .work = work, .failed = giveUp});
  tellAsking();
}

std::function<bool()> Questions::newest(const QString& tag) {
  return [this, tag, number = ++newest_[tag]] { return newest_.value(tag) == number; };
}

void Questions::cancelAll() {
  cancelValues();
  for (const auto& tag : titled_) cancel(tag);
}

bool Questions::asking() const {
  return std::ranges::any_of(titled_, [&](const QString& tag) { return state_.worker->busy(state_.owner, tag); });
}

void Questions::requestValues(const ValueRequest& request) {
  if (!request.op) return;
  const auto question = [this, request](const QuestionContext& context, const Progress& progress) -> Worker::Deliver {
    const auto& analysis = *context.document.analysis;
    auto report = std::make_shared<ValueReport>();
    if (context.runner) {
      *report = reportValues(*context.runner, analysis, request, progress);
    } else {
      report->op = request.op;
      report->rows = valueRows(*analysis.document, request.op, true);
      for (auto& row : report->rows) row.state.reason = row.absentNow = "the document cannot be run";
    }
    return [this, report] {
      values_ = report;
      Q_EMIT valuesReady(report);
    };
  };
  post(this, valuesTag, tr("Values"), question, [this](const QString& message) {
    if (!message.isEmpty()) Q_EMIT valuesFailed(message);
  });
}

void Questions::cancelValues() { cancel(valuesTag); }

void Questions::fillValue(ValueId value, double number) {
  if (!state_.document || !state_.execution->now().available || state_.execution->now().running) return;
  const auto question = [this, value, number](const QuestionContext& context, const Progress&) -> Worker::Deliver {
    context.runner->fill(value, number);
    return [this] { state_.execution->set(state_.execution->now()); };  // views of values ask again
  };
  ask(this, QStringLiteral("fill %1").arg(value.index), tr("Fill"), question, [this](const QString& message) {
    if (!message.isEmpty()) Q_EMIT failed(message);
  });
}

void Questions::saveValue(ValueId value, const QString& path, std::function<void(const QString&)> done,
                          BoundSymbolId op) {
  if (!state_.document || !value) return;
  const auto question = [value, op, path = path.toStdString(), done](const QuestionContext& context,
                                                                     const Progress& progress) -> Worker::Deliver {
    if (!context.runner) throw Error(ErrorCode::badUse, "the document cannot be run");
    const bool isOperand = op && context.document.analysis->document->value(value).producer != op;
    const auto side = isOperand ? Moment::Side::before : Moment::Side::after;
    auto moment = op ? context.runner->at(op, progress) : nullptr;
    if (!moment || !moment->state(value, side).present) moment = context.runner->of(value, progress);
    const auto contents = moment->contents(value, side);
    if (path.ends_with(".npy")) writeNpy(path, contents);
    else writeSafetensors(path, {{context.document.analysis->document->displayName(value), contents}});
    return [done] { done({}); };
  };
  ask(this, QStringLiteral("save value ") + path, tr("Saving the value"), question,
      [done](const QString& message) { done(message.isEmpty() ? tr("Cancelled: the value was not saved") : message); });
}

}  // namespace retrograd::views
