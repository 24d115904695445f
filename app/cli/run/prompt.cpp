#include "app/cli/run/prompt.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <mutex>
#include <set>

#if RETROGRAD_LIBEDIT
#include <histedit.h>
#endif

namespace fs = std::filesystem;

namespace retrograd::cli {

std::vector<std::string> completions(const std::string& word, const std::vector<std::string>& known) {
  std::set<std::string> found;
  for (const auto& one : known)
    if (one.starts_with(word)) found.insert(one);
  return {found.begin(), found.end()};
}

std::string commonPrefix(const std::vector<std::string>& words) {
  if (words.empty()) return {};
  auto prefix = words.front();
  for (const auto& word : words)
    prefix.resize(static_cast<std::size_t>(std::mismatch(prefix.begin(), prefix.end(), word.begin(), word.end()).first -
                                           prefix.begin()));
  return prefix;
}

bool Prompt::isUseful() { return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO); }

#if RETROGRAD_LIBEDIT

namespace {

fs::path historyFile() {
  const auto* state = std::getenv("XDG_STATE_HOME");
  const auto* home = std::getenv("HOME");
  if (state && *state) return fs::path(state) / "retrograd" / "history";
  return home && *home ? fs::path(home) / ".local" / "state" / "retrograd" / "history" : fs::path();
}

std::mutex waitingMutex;
std::optional<pthread_t> waitingThread;

/// While one lives, leavePrompt() interrupts the read of this thread: libedit then gives no line.
class Waiting {
 public:
  Waiting() {
    struct sigaction action{};  // without SA_RESTART
    action.sa_handler = [](int) {};
    ::sigaction(SIGUSR2, &action, nullptr);
    const std::lock_guard lock(waitingMutex);
    waitingThread = pthread_self();
  }
  ~Waiting() {
    const std::lock_guard lock(waitingMutex);
    waitingThread.reset();
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
};

}  // namespace

void leavePrompt() {
  const std::lock_guard lock(waitingMutex);
  if (waitingThread) pthread_kill(*waitingThread, SIGUSR2);
}

struct Prompt::Impl {
  PromptWords words;
  EditLine* editor = nullptr;
  History* history = nullptr;

  explicit Impl(PromptWords w) : words(std::move(w)) {
    editor = el_init("retrograd", stdin, stdout, stderr);
    history = history_init();
    if (!editor || !history) return;
    HistEvent event;
    ::history(history, &event, H_SETSIZE, 1000);
    ::history(history, &event, H_SETUNIQUE, 1);
    if (const auto file = historyFile(); !file.empty()) ::history(history, &event, H_LOAD, file.c_str());
    el_set(editor, EL_CLIENTDATA, this);
    el_set(editor, EL_PROMPT, &prompt);
    el_set(editor, EL_EDITOR, "emacs");
    el_set(editor, EL_HIST, ::history, history);
    el_set(editor, EL_ADDFN, "retrograd-complete", "complete the word, or explain the command", &complete);
    el_set(editor, EL_ADDFN, "retrograd-drop", "drop the line", &drop);
    el_set(editor, EL_SETTY, "-d", "-isig",
           nullptr);  // Ctrl+C is a key while a line is edited, and a signal while a command runs
    el_set(editor, EL_BIND, "^I", "retrograd-complete", nullptr);
    el_set(editor, EL_BIND, "^C", "retrograd-drop", nullptr);
    el_set(editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  }
  ~Impl() {
    if (history) {
      const auto file = historyFile();
      std::error_code ignored;
      if (!file.empty()) fs::create_directories(file.parent_path(), ignored);
      HistEvent event;
      if (!file.empty() && !ignored) ::history(history, &event, H_SAVE, file.c_str());
      history_end(history);
    }
    if (editor) el_end(editor);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  static char* prompt(EditLine*) {
    static char text[] = "(retrograd) ";
    return text;
  }

  static Impl& of(EditLine* editor) {
    void* data = nullptr;
    el_get(editor, EL_CLIENTDATA, &data);
    return *static_cast<Impl*>(data);
  }

  static unsigned char drop(EditLine* editor, int) {
    const auto* line = el_line(editor);
    const auto rest = static_cast<int>(line->lastchar - line->cursor),
               all = static_cast<int>(line->lastchar - line->buffer);
    el_cursor(editor, rest);
    el_deletestr(editor, all);
    std::fputs("^C\n", stdout);
    return CC_REDISPLAY;
  }

  static unsigned char complete(EditLine* editor, int) {
    const auto* line = el_line(editor);
    return of(editor).completed(std::string(line->buffer, line->cursor));
  }

  /// Completes the last word of what is before the cursor.
  unsigned char completed(const std::string& text) {
    const auto begin = text.find_last_of(' ') + 1;
    const auto word = text.substr(begin);
    const auto command = text.substr(0, text.find(' '));
    const bool isCommand = text.find(' ') == std::string::npos;
    const auto found = completions(word, isCommand || command == "help" ? words.commands : words.others(command));
    if (found.size() == 1) {
      el_insertstr(editor, (found.front().substr(word.size()) + " ").c_str());
      return CC_REFRESH;
    }
    if (const auto prefix = commonPrefix(found); prefix.size() > word.size()) {
      el_insertstr(editor, prefix.substr(word.size()).c_str());
      return CC_REFRESH;
    }
    return isCommand || (!found.empty() && !word.empty()) ? listed(found) : explained(command);
  }

  static unsigned char listed(const std::vector<std::string>& found) {
    if (found.empty()) return CC_ERROR;
    constexpr std::size_t most = 200, column = 26, columns = 3;
    std::fputc('\n', stdout);
    for (std::size_t i = 0; i < std::min(found.size(), most); ++i)
      std::fprintf(stdout, "%-*s%s", static_cast<int>(column), found[i].c_str(),
                   i % columns + 1 == columns || i + 1 == std::min(found.size(), most) ? "\n" : " ");
    if (found.size() > most) std::fprintf(stdout, "... and %zu more\n", found.size() - most);
    return CC_REDISPLAY;
  }

  unsigned char explained(const std::string& command) const {
    const auto help = words.help(command);
    if (help.empty()) return CC_ERROR;
    std::fprintf(stdout, "\n%s\n", help.c_str());
    return CC_REDISPLAY;
  }
};

std::optional<std::string> Prompt::line() {
  int count = 0;
  const Waiting waiting;
  const char* read = impl_->editor ? el_gets(impl_->editor, &count) : nullptr;
  if (!read || count <= 0) {
    std::fputc('\n', stdout);
    return std::nullopt;
  }
  std::string text(read, static_cast<std::size_t>(count));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  HistEvent event;
  if (!text.empty()) ::history(impl_->history, &event, H_ENTER, text.c_str());
  return text;
}

#else

struct Prompt::Impl {
  explicit Impl(PromptWords) {}
};

void leavePrompt() {}

std::optional<std::string> Prompt::line() {
  std::fputs("(retrograd) ", stdout);
  std::fflush(stdout);
  std::string text;
  return std::getline(std::cin, text) ? std::optional(text) : std::nullopt;
}

#endif

namespace {

std::mutex commandMutex;
std::stop_source* runningCommand = nullptr;

}  // namespace

CommandStop::CommandStop() {
  const std::lock_guard lock(commandMutex);
  runningCommand = &source_;
}

CommandStop::~CommandStop() {
  const std::lock_guard lock(commandMutex);
  runningCommand = nullptr;
}

bool stopCommand() {
  const std::lock_guard lock(commandMutex);
  return runningCommand && runningCommand->request_stop();
}

Prompt::Prompt(PromptWords words) : impl_(std::make_unique<Impl>(std::move(words))) {}
Prompt::~Prompt() = default;

}  // namespace retrograd::cli
