#pragma once
#include <string>

namespace retrograd {

/// "2.15.0"
std::string libTorchVersion();

/// Threads LibTorch's kernels use in this process; 0 leaves its own choice.
void setThreads(int count);

/// Threads that LibTorch's kernels use at present.
int threadCount();

/// While it lives, kernels use this many threads; afterwards as many as before. 0 leaves them as they are.
class ThreadScope {
 public:
  explicit ThreadScope(int threads);
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int before_;
};

/// While it lives, this thread runs on one thread what is small, and what is large asks for more (forLargeWork). A loop
/// over ops holds one, since each change of the number makes LibTorch forget the convolutions it has prepared. `most`
/// is for what is large; 0: as many as kernels use now.
class RunThreads {
 public:
  explicit RunThreads(int most);
  ~RunThreads();

  /// For a ThreadScope around large work: `most` of the RunThreads around it, else 0.
  static int forLargeWork();
  /// The same for small work: 0 where a RunThreads has seen to it, else 1.
  static int forSmallWork();

 private:
  int mostBefore_;
  ThreadScope one_;
};

}  // namespace retrograd
