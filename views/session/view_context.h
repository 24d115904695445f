#pragma once
#include "views/session/document_controller.h"
#include "views/session/jump_history.h"
#include "views/session/note_book.h"
#include "views/session/op_filter.h"
#include "views/session/selection.h"
#include "views/text/format.h"
#include "views/theme/theme.h"

namespace retrograd::views {

class StagePlan;

/// What every view of a window is given: the shared objects it subscribes to. The main window owns them and outlives
/// the views.
struct ViewContext {
  DocumentController* controller = nullptr;
  Selection* selection = nullptr;
  ExecutionState* execution = nullptr;
  JumpHistory* history = nullptr;
  Theme* theme = nullptr;
  OpFilter* filter = nullptr;
  NoteBook* notes = nullptr;
  StagePlan* stages = nullptr;  ///< null in windows that cut nothing
};

}  // namespace retrograd::views
