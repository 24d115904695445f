#pragma once
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/torch/session/session.h"

namespace retrograd {

/// What a command of the debugger answered.
struct CommandAnswer {
  std::string text;             ///< for people
  nlohmann::ordered_json json;  ///< the same for programs
  bool bad = false;             ///< it looked for a fault, such as a NaN or a wrong gradient, and found one
};

struct ScriptState;

/// The debugger's commands as words, over one Session: what `retrograd debug` reads from a script, and what the window
/// does. `help` lists them. Lives on the thread that owns LibTorch.
class DebugScript {
 public:
  explicit DebugScript(const std::shared_ptr<const Analysis>& analysis, SessionOptions options = {});
  ~DebugScript();

  /// Runs one line; an empty one and one that starts with # does nothing. Throws Error(badUse) for an unknown command
  /// or does not fit, and what running an op throws.
  CommandAnswer run(const std::string& line, const Progress& progress = {});
  Session& session();

  /// Name with arguments, and what it does; in order.
  static std::vector<std::pair<std::string, std::string>> commands();

 private:
  std::unique_ptr<ScriptState> state_;
};

}  // namespace retrograd
