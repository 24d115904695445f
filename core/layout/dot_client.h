#pragma once
#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

#include "core/layout/layering.h"

namespace retrograd::layout {

/// `retrograd-layout` beside the running program; empty where it is not there.
std::string layoutHelper();

/// Rows and order by Graphviz's dot, in a process of its own that is started when first needed, asked one graph at a time and killed to cancel.
/// Not for several threads at once.
class DotClient {
 public:
  static constexpr std::int32_t mostNodes = 2'000;   ///< beyond them dot takes minutes and gigabytes

  explicit DotClient(std::string program = layoutHelper()) : program_(std::move(program)) {}
  ~DotClient() { stop(); }
  DotClient(const DotClient&) = delete;
  DotClient& operator=(const DotClient&) = delete;

  /// Nothing where there is no helper, the graph is larger than `mostNodes`, the helper fails or takes longer than the limit.
  /// Throws Error(cancelled).
  std::optional<Layering> operator()(const LayerGraph& graph, const Progress& progress = {});

  void setLimit(std::chrono::milliseconds limit) { limit_ = limit; }
  /// Of the helper that runs; -1 where none does.
  pid_t process() const { return process_; }

 private:
  bool start();
  void stop();
  bool send(const std::string& text, const Progress& progress);
  /// Reads up to the line "end" or an error; empty where the process ended or the time is over.
  std::string receive(const Progress& progress);
  bool wait(short what, const Progress& progress);

  std::string program_;
  pid_t process_ = -1;
  int socket_ = -1;
  std::chrono::milliseconds limit_{5'000};
  std::chrono::steady_clock::time_point deadline_;
};

/// The better of the own layout and dot's: dot is asked where the own has crossings.
std::optional<Layering> bestLayering(DotClient& dot, const LayerGraph& graph, const Progress& progress);

}  // namespace retrograd::layout
