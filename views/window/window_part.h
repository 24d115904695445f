#pragma once
#include <cstdint>

#include "views/window/main_window.h"

namespace retrograd::views {

/// All parts of the window, in the order in which they are installed: that of docks in their stacks, and of entries in
/// a menu that several parts add to. panelGroups() (views/parts/panels.cpp) orders View > Docks.
// clang-format off: a line for each menu
enum class PartOrder : std::uint8_t {
  // Panels of the default layout.
  modules, why, values, watches, optimizer, memory, breakpoints, findings, references, checks, compare, whatIf, problems, recordedMemory, job, verdict, panelSizes,
  // File, View, Go, Marks
  valueCommands, fileNotice, checkNotice, filter, jumps, notes, source, layouts, pins,
  // File: weights and batch; what messages call these and other choices
  givenData, choiceNames,
  // Run, View, hovering and V
  runOnOpen, numberColumns, traceTable, gradientFlow, valueTips, compareValues,
  // Run, View, File
  deviceMenu, graphMenu, graphWays, measureMemory, historyMemory, compareTraces, sessions, saveSession, exports,
  // Pipeline
  stages, tour, stageCheck, saveStages, cutMenus, schedule,
  // Those that look at what all others added.
  onDemand, followSteps, panelKeys, opNumbers, preferences, help, keys, narrowWindow
};
// clang-format on

/// A part of the window in a file of its own, in views/parts/, pipeline/, jobs/, memory/ or numbers/: it adds its
/// docks, commands and menu entries to each main window. Make one at namespace scope and give it a place in PartOrder;
/// that is all that has to be done for it to be there.
class WindowPart {
 public:
  using Install = void (*)(MainWindow& window);
  /// Parts are installed after the window's own furniture, before its saved layout is restored.
  WindowPart(PartOrder order, Install install);
};

/// Called by the main window, once.
void installWindowParts(MainWindow& window);

}  // namespace retrograd::views
