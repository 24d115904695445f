#include "views/memory/open_memory.h"

#include <QFileInfo>

#include "core/base/error.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

const QString stepTag = QStringLiteral("memory/step");

QString nameOf(const QString& path) { return QFileInfo(path).fileName(); }

/// Groups a history and stacks it. On the pool.
void stack(ShownMemory& shown, MemoryGrouping by) {
  shown.grouped = std::make_shared<const GroupedAllocations>(groupedAllocations(*shown.recorded, by));
  const std::shared_ptr<const HeldMemory> history(shown.recorded, &shown.recorded->history);
  shown.stack = std::make_shared<const MemoryStack>(history, *shown.grouped, std::size_t{OpenMemory::bands});
}

/// Of each op of the open document a block that it made.
std::unordered_map<BoundSymbolId, std::int32_t> blocksOf(const MemoryJoin& join, std::int64_t peakEvent) {
  std::unordered_map<BoundSymbolId, std::int32_t> blocks;
  const auto peakStep = stepWith(join, peakEvent);
  for (std::size_t i = 0; i < join.allocations.size(); ++i) {
    const auto& each = join.allocations[i];
    const auto maker = makerOf(join, each);
    if (!maker) continue;
    const auto [found, isNew] = blocks.try_emplace(maker, static_cast<std::int32_t>(i));
    if (!isNew && each.step == peakStep && join.allocations[found->second].step != peakStep)
      found->second = static_cast<std::int32_t>(i);
  }
  return blocks;
}

/// Joins what was read with a step; without one it is as it was read. On the pool.
ShownMemory joined(const ShownMemory& read, const OpenStep& step, MemoryGrouping by) {
  ShownMemory shown{read.read, read.read, {}, {}, {}, {}, {}};
  if (!read.read) return shown;
  if (step.what) {
    shown.joinedWith = step.of;
    const auto both = std::make_shared<RecordedMemory>(*read.read);
    joinRecorded(*both, *step.what);
    shown.recorded = both;
    shown.blocks = std::make_shared<const std::unordered_map<BoundSymbolId, std::int32_t>>(
        blocksOf(*both->join, both->history.peakEvent));
    if (agrees(*both->join))  // what a model needs says nothing of the memory of another program
      shown.prediction =
          std::make_shared<const MemoryPrediction>(memoryPrediction(*both->join, both->history.peakEvent));
  }
  stack(shown, by);
  return shown;
}

}  // namespace

BoundSymbolId ShownMemory::makerOf(std::int32_t allocation, const std::shared_ptr<const Analysis>& analysis) const {
  if (!analysis || !recorded || !recorded->join || allocation < 0 || joinedWith.lock() != analysis) return {};
  return retrograd::makerOf(*recorded->join, recorded->join->allocations[allocation]);
}

std::int32_t ShownMemory::blockOf(BoundSymbolId op, const std::shared_ptr<const Analysis>& analysis) const {
  if (!analysis || !blocks || joinedWith.lock() != analysis) return -1;
  const auto found = blocks->find(op);
  return found == blocks->end() ? -1 : found->second;
}

OpenMemory::OpenMemory(DocumentController* controller, QObject* parent) : QObject(parent), controller_(controller) {
  connect(controller_, &DocumentController::documentAboutToChange, this, [this] {
    joining_.cancel();
    step_ = {};
  });
  connect(controller_, &DocumentController::documentChanged, this, &OpenMemory::documentChanged);
  connect(&opening_, &PoolJob::progressed, this, [this](const QString& stage, double fraction) {
    setBusy(tr("%1: %2, %3 %").arg(nameOf(path_), stage).arg(qRound(100 * fraction)));
  });
}

void OpenMemory::setBusy(const QString& text) {
  if (busyText_ == text) return;
  busyText_ = text;
  Q_EMIT busyChanged();
}

void OpenMemory::setDevice(std::size_t device) {
  if (!shown_.read || shown_.read->device == device) return;
  path_ = toQt(shown_.read->path);
  replay(shown_.read->snapshot, Side::first, device);
}

void OpenMemory::read(const QString& path, Side side, std::optional<std::size_t> device) {
  path_ = path;
  setBusy(tr("Reading %1").arg(nameOf(path)));
  opening_.start([this, path, side, device](const Progress& progress) -> PoolJob::Deliver {
    std::shared_ptr<const MemorySnapshot> snapshot;
    try {
      snapshot = openMemorySnapshot(path.toStdString(), progress);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::cancelled) return {};
      return [this, message = toQt(error.what())] {
        setBusy({});
        Q_EMIT failed(message);
      };
    }
    return [this, snapshot, side, device] { replay(snapshot, side, device); };
  });
}

void OpenMemory::replay(const std::shared_ptr<const MemorySnapshot>& snapshot, Side side,
                        std::optional<std::size_t> device) {
  setBusy(tr("Replaying %1").arg(nameOf(path_)));
  opening_.start([this, path = path_, snapshot, side, device, step = step_,
                  by = by_](const Progress& progress) -> PoolJob::Deliver {
    ShownMemory read;
    read.read = std::make_shared<const RecordedMemory>(
        recordedMemory(path.toStdString(), snapshot, device.value_or(firstDevice(*snapshot)), progress));
    const auto shown = joined(read, step, by);
    return [this, path, side, shown, step, by] {
      (side == Side::first ? shown_ : other_) = shown;
      if (side == Side::first) other_ = {};
      setBusy({});
      if (step.what != step_.what || by != by_) join();
      else if (!step_.what) askForStep();
      Q_EMIT opened(path);
      Q_EMIT changed();
    };
  });
}

void OpenMemory::close() {
  if (busyText_.isEmpty() && other_.recorded) {
    other_ = {};
  } else {
    opening_.cancel();
    joining_.cancel();
    setBusy({});
    shown_ = other_ = {};
  }
  Q_EMIT changed();
}

void OpenMemory::setGrouping(MemoryGrouping by) {
  if (by == by_) return;
  by_ = by;
  if (shown_.recorded) join();
}

void OpenMemory::documentChanged() {
  notJoined_ = tr("No model is open to join it with");
  if (!shown_.recorded) return;
  if (shown_.recorded->join) join();  // without the document that is gone
  askForStep();
  Q_EMIT changed();
}

void OpenMemory::askForStep() {
  const auto& document = controller_->document();
  notJoined_ = document ? QString() : tr("No model is open to join it with");
  if (!document || !shown_.recorded) return;
  if (!document->analysis->derived()) {
    notJoined_ = tr("The open file has no backward to join it with");
    return;
  }
  notJoined_ = tr("It is being joined with the open model");
  const auto work = [this](const QuestionContext& context, const Progress& progress) -> Worker::Deliver {
    const auto step = std::make_shared<const TracedStep>(
        context.engine.gpuStep(*context.document.analysis, context.document.request, progress));
    return [this, step, of = std::weak_ptr(context.document.analysis)] {
      step_ = {step, of};
      notJoined_.clear();
      join();
    };
  };
  controller_->questions().ask(this, stepTag, tr("Joining the memory snapshot"), work, [this](const QString& why) {
    notJoined_ = why.isEmpty() ? tr("Joining it was cancelled") : why;
    Q_EMIT changed();
  });
}

void OpenMemory::join() {
  joining_.start([this, shown = shown_, other = other_, step = step_, by = by_](const Progress&) -> PoolJob::Deliver {
    return [this, shown = joined(shown, step, by), other = joined(other, step, by)] {
      shown_ = shown;
      other_ = other;
      Q_EMIT changed();
    };
  });
}

}  // namespace retrograd::views
