#pragma once
// Waiting for transfers, while no rank has failed. Only the units that use c10d include this.
#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <chrono>
#include <functional>
#include <string>

#include "core/ranks/liveness.h"
#include "core/ranks/transport.h"

namespace retrograd {

/// Waits for what c10d does in the background, and never for a rank that has failed. Errors name the rank and the
/// reason (Error(execution)).
class GroupWait {
 public:
  /// A peer that may be any rank.
  static constexpr int anyRank = -1;

  /// `limit`: for any transfer.
  GroupWait(Liveness& liveness, std::chrono::milliseconds limit) : liveness_(liveness), limit_(limit) {}

  /// Throws where a rank has failed.
  void requireHealth() const;
  /// Starts something with a peer.
  c10::intrusive_ptr<c10d::Work> begin(int peer, const std::function<c10::intrusive_ptr<c10d::Work>()>& start) const;
  /// For a transfer of Gloo between two ranks, which knows only whether it can be waited for.
  void interruptible(c10d::Work& work, int peer) const;
  /// For what can be asked whether it is over, but not interrupted: collectives, and all that NCCL does. What is left
  /// behind goes on using its memory.
  void polled(c10d::Work& work, int peer) const;
  /// For a call that may not come back while a rank is missing; with a failure it is left behind, on a thread of its
  /// own.
  void leavable(std::function<void()> call, int peer) const;

  bool hasFailed() const { return liveness_.hasFailed(); }

 private:
  [[noreturn]] void giveUp(int peer, const std::string& trouble) const;
  bool goesOn(std::chrono::steady_clock::time_point deadline) const {
    return !liveness_.hasFailed() && std::chrono::steady_clock::now() < deadline;
  }

  Liveness& liveness_;
  std::chrono::milliseconds limit_;
};

/// Bytes on their way between this rank and `peer`.
class GroupTransfer final : public Transfer {
 public:
  GroupTransfer(c10::intrusive_ptr<c10d::Work> work, at::Tensor bytes, int peer, const GroupWait& wait)
      : work_(std::move(work)), bytes_(std::move(bytes)), peer_(peer), wait_(wait) {}
  ~GroupTransfer() override {
    // After a failure: it may still be used, until the process ends. Without memory for two pointers the process ends
    // either way.
    if (work_) new std::pair(std::move(work_), std::move(bytes_));  // NOLINT(bugprone-unhandled-exception-at-new)
  }
  void wait() override {
    if (!work_) return;
    if (bytes_.is_cuda()) wait_.polled(*work_, peer_);
    else wait_.interruptible(*work_, peer_);
    work_.reset();
    bytes_.reset();
  }

 private:
  c10::intrusive_ptr<c10d::Work> work_;  // null once it is over
  at::Tensor bytes_;
  int peer_;
  const GroupWait& wait_;
};

/// What happened, in one line: without the place in LibTorch's source that is before it and the advice behind it.
std::string reasonOf(const std::exception& error);

}  // namespace retrograd
