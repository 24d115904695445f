#pragma once
#include <QString>
#include <functional>
#include <memory>

#include "core/base/enum_array.h"
#include "core/questions/intended_infinities.h"
#include "views/engine/engine.h"
#include "views/engine/program.h"
#include "views/engine/worker.h"
#include "views/session/execution_state.h"
#include "views/settings/file_stamp.h"
#include "views/text/trace_index.h"

namespace retrograd::views {

/// What a person opened. Each kind has a layout of its own.
enum class FileKind : std::uint8_t { model, step, job, session };
/// "model", "step", "job", "session"
QString name(FileKind kind);

/// An open document as the views see it; never changes once published.
struct OpenDocument {
  OpenRequest request;
  FileKind kind = FileKind::model;
  std::shared_ptr<const Analysis> analysis;
  EnumArray<TraceKind, std::shared_ptr<const TraceIndex>, 4> traces;  ///< by TraceKind
  SavedValues saved;
  IntendedInfinities intended;
  Program program;
  double seconds = 0;   ///< that a run is estimated to take (estimatedSeconds())
  QString noRunReason;  ///< why it cannot be run; empty when it can
  FileStamp file;       ///< of the file when it was read

  const TraceIndex& trace(TraceKind kind) const { return *traces[kind]; }
};

/// The runner of one document. Made, used and destroyed on the worker, since tensors hang on it; other threads only
/// give it places to stop at.
struct RunSlot {
  std::unique_ptr<Runner> runner;  ///< null where the document cannot be run
  std::uint64_t stops = 0;         ///< how often a command ended early: by a bad number, an error or the user
};

/// The open document of a window and where it is worked on: shared by run control, marks and questions, written by the
/// DocumentController alone.
///
/// What is posted for one document must not be heard of for the next: answers compare the slot that they were asked of
/// with the one here.
struct OpenState {
  QObject* owner = nullptr;  ///< of all jobs of the window
  std::shared_ptr<Worker> worker;
  std::shared_ptr<Engine> engine;
  ExecutionState* execution = nullptr;
  std::shared_ptr<const OpenDocument> document;  ///< null while nothing is open
  std::shared_ptr<RunSlot> slot;                 ///< of the document

  /// Does this with the runner, where there is one, on the worker; what it returns is called on the window's thread
  /// while the document is open.
  void onRunner(const QString& tag, std::function<Worker::Deliver(Runner&)> work) const {
    if (!slot) return;
    const auto job = [this, asked = slot, work = std::move(work)](const Progress&) -> Worker::Deliver {
      auto deliver = asked->runner ? work(*asked->runner) : Worker::Deliver();
      return [this, asked, deliver] {
        if (asked == slot && deliver) deliver();
      };
    };
    worker->post(owner, {.tag = tag, .work = job});
  }
};

}  // namespace retrograd::views
