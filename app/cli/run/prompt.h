#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace retrograd::cli {

/// What the prompt completes and explains.
struct PromptWords {
  std::vector<std::string> commands;                                   ///< for the first word
  std::function<std::vector<std::string>(const std::string&)> others;  ///< for the words after the command of this name
  std::function<std::string(const std::string&)>
      help;  ///< of a command; shown by Tab where nothing can be completed. Empty: none
};

/// Reads commands from a terminal, with editing, history and completion (libedit). The history is kept in
/// $XDG_STATE_HOME/retrograd/history; failing to read or write it is not an error. Built without libedit, it reads
/// plain lines.
class Prompt {
 public:
  explicit Prompt(PromptWords words);
  ~Prompt();
  Prompt(const Prompt&) = delete;
  Prompt& operator=(const Prompt&) = delete;

  /// Whether standard input and output are a terminal.
  static bool isUseful();
  /// The next line without its end; nothing at the end of the input (Ctrl+D). Ctrl+C drops the line.
  std::optional<std::string> line();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The wish to stop the command that runs at the prompt. While one lives, Ctrl+C stops that command and not the
/// program. One at a time.
class CommandStop {
 public:
  CommandStop();
  ~CommandStop();
  CommandStop(const CommandStop&) = delete;
  CommandStop& operator=(const CommandStop&) = delete;

  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
};

/// Ends the wait for a line, from any thread, as the end of the input does. Does nothing where nobody waits.
void leavePrompt();

/// Asks the command at the prompt to stop, from any thread. False where no command runs, or where it was asked before.
bool stopCommand();

/// Of `known`, those that begin with `word`, in order.
std::vector<std::string> completions(const std::string& word, const std::vector<std::string>& known);
/// What all of `words` begin with.
std::string commonPrefix(const std::vector<std::string>& words);

}  // namespace retrograd::cli
