#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"

namespace retrograd {

/// How a child process ended.
struct Ending {
  int status = 0;  ///< as waitpid() gives it

  bool isSignal() const;
  int signal() const;
  int exitCode() const;  ///< 128 + the signal for one that was killed, as shells report it
  bool good() const { return status == 0; }
  /// "ended with exit code 3", "ended by signal 11 (Segmentation fault)".
  std::string text() const;
};

/// What a child gets. Nothing else of this process: all descriptors but its streams are closed in it, no signal is
/// blocked or ignored, and it leaves no core file.
struct ChildOptions {
  enum class Streams : std::uint8_t {
    silent,  ///< all three are /dev/null
    pipes,   ///< output and errors come through pipes; no input
    socket   ///< input and output are one socket; no errors
  };
  Streams streams = Streams::silent;
  std::vector<std::string> environment;  ///< "NAME=value"; empty: that of this process
  bool ownGroup = false;                 ///< signals go to it and all processes that it starts
  bool endsWithThread = false;   ///< killed when the thread that started it ends, so when this process is killed, too
  std::uint64_t memory = 0;      ///< bytes of its own that it may allocate; 0: no limit
  std::uint64_t cpuSeconds = 0;  ///< that it may compute; 0: no limit
};

/// A child process. All that are started go through here. It is killed and waited for where nobody waited for its end;
/// its descriptors on this side close by themselves in other children, so that no child keeps another's pipe open. Not
/// for several threads at once.
class Child {
 public:
  /// Starts a program: its path, then its arguments. Throws Error(io) naming it where it cannot be started.
  Child(const std::vector<std::string>& command, const ChildOptions& options);
  /// Runs `body` in a copy of this process, with the descriptor to write to; its result is the exit code. Only while
  /// this process has one thread.
  Child(const std::function<int(int output)>& body, const ChildOptions& options);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t id() const { return process_; }  ///< -1 once its end was seen
  bool running() const { return process_ > 0; }
  /// Non-blocking descriptors on this side; -1 where there is none. A socket is `output`.
  int output() const { return output_; }
  int errors() const { return errors_; }

  void signal(int number) const;
  /// How it ended, if it has. Does not wait.
  std::optional<Ending> ended();
  /// Waits for its end; kills it and returns nothing when the time is over. Throws Error(cancelled) after killing it.
  std::optional<Ending> await(std::chrono::duration<double> limit, const Progress& progress);
  /// Kills it, with its group if it has one, and waits for its end. Does nothing once its end was seen.
  void kill();

 private:
  void open(ChildOptions::Streams streams, int (&theirs)[3]);
  void closeAll();

  pid_t process_ = -1;
  int output_ = -1, errors_ = -1;
  bool ownGroup_ = false;
};

/// Splits what a descriptor brings into lines, without their ends. A line that is longer than `longest` comes in
/// pieces.
class LineReader {
 public:
  LineReader(int handle, std::function<void(std::string_view)> onLine, std::size_t longest);
  ~LineReader() { finish(); }
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  bool open() const { return !ended_; }
  int handle() const { return handle_; }
  /// Takes what is there; returns at the end or where it would have to wait. Throws Error(io).
  void read();
  /// A last line without an end; nothing is read afterwards.
  void finish();

 private:
  int handle_;
  std::function<void(std::string_view)> onLine_;
  std::size_t longest_;
  std::string rest_;
  bool ended_ = false;
};

}  // namespace retrograd
