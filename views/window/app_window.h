#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/derivation/registry.h"
#include "core/torch/opening/open_request.h"
#include "core/trace/trace.h"

namespace retrograd {

/// Opens a window for each file (an empty one without files) and runs until the last is closed; returns the exit code.
int runWindow(int& argc, char** argv, const std::vector<std::string>& files,
              std::shared_ptr<const RuleRegistry> rules = {});

/// What a picture of the window shows.
struct PictureOptions {
  OpenRequest model;  ///< what to open and on what to run it; no path: the start page
  bool dark = false;
  bool highContrast = false;           ///< light or dark as `dark` says
  bool graph = false;                  ///< the graph instead of the listings
  TraceKind trace = TraceKind::joint;  ///< that the graph is of
  bool whole = false;                  ///< all of the graph, not what is around the selected op
  bool openAll = false;                ///< every group of the graph is open
  bool compare = false;                ///< the window that compares traces instead of the main window
  std::string compareWith;             ///< with the traces of this file; empty: with as few bytes saved as possible
  std::string select;                  ///< the op that makes the value of this name; empty: the one that ran last
  std::vector<std::string>
      commands;          ///< given one after the other, by the names that settings have for their keys: "step-over"
  std::string filter;    ///< of the ops that show
  std::string recorded;  ///< recorded numbers to compare with those of the model; empty: none
  std::vector<std::string> memory;  ///< a memory snapshot to open next to the model, and one to compare it with
  std::vector<std::string> docks;   ///< brought to the front: "why"
  int width = 1600, height = 980;
};

/// Opens the model in a window that is never shown on a display, steps over the border into the backward, selects a
/// backward op and writes a picture of the window as PNG. False where the file cannot be opened, what is asked for is
/// not there, or the picture is not written; why is on stderr.
bool renderWindowToPicture(const PictureOptions& options, const std::string& picture);

}  // namespace retrograd
