#pragma once
// Verifies large weights while the program goes on, each before its first use.
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "core/formats/files/mapped_file.h"

namespace retrograd {

/// The CRC-32 of zip archives, on with `crc` from before.
std::uint32_t crc32Of(std::uint32_t crc, std::span<const std::byte> bytes);

/// A region of a mapped file and the checksum it is to have.
struct CheckedRegion {
  std::string name;
  std::uint64_t offset = 0, size = 0;
  std::uint32_t crc = 0;
};

/// Compares checksums of a mapped file's regions while the program goes on: in their order, and at once for one that
/// somebody is about to use.
class DeferredCheck {
 public:
  /// `place` names the file in errors. Starts a thread of low priority.
  DeferredCheck(ByteRegion file, std::string place, std::vector<CheckedRegion> regions);
  /// Stops the thread.
  ~DeferredCheck();
  DeferredCheck(const DeferredCheck&) = delete;
  DeferredCheck& operator=(const DeferredCheck&) = delete;

  /// Returns when the region that `data` lies in is known to be whole; other memory is nothing to it. Throws
  /// Error(badInput) naming file and region.
  void require(const std::byte* data);
  /// Waits until all is compared. Throws as require() for the first region that is damaged.
  void wait();

  bool holds(const void* data) const { return data >= file_.data && data < file_.data + file_.size; }
  const std::string& place() const { return place_; }
  std::uint64_t bytes() const { return total_; }
  std::uint64_t checkedBytes() const { return checked_; }
  /// Of the first region found damaged.
  std::optional<std::string> damage() const;

 private:
  enum class State : std::uint8_t { open, running, whole, damaged };
  void runAll(const std::stop_token& stop);
  State check(std::size_t index, const std::stop_token& stop);
  [[noreturn]] void fail(const CheckedRegion& region) const;

  ByteRegion file_;
  std::string place_;
  std::vector<CheckedRegion> regions_;  ///< by offset
  std::vector<State> states_;           ///< under the lock
  mutable std::mutex lock_;
  std::condition_variable changed_;
  std::uint64_t total_ = 0;
  std::atomic<std::uint64_t> checked_{0};
  std::jthread thread_;
};

/// False where all that was read is known to be whole.
bool anyUnverified();
/// Asks the check, if there is one, whether what lies at `data` is whole, and waits for the answer. Costs one
/// comparison when no check is under way. Throws as DeferredCheck::require().
void requireVerified(const void* data);

/// While one lives, what this thread makes of tensors is not verified at once, because whoever uses them asks:
/// requireVerifiedUnlessLater() does nothing.
class VerifyLater {
 public:
  VerifyLater();
  ~VerifyLater();
  VerifyLater(const VerifyLater&) = delete;
  VerifyLater& operator=(const VerifyLater&) = delete;
};
void requireVerifiedUnlessLater(const void* data);

/// How far the checks of this process are. `damaged`: what they found, one line a file.
struct VerificationStatus {
  std::uint64_t bytes = 0, checked = 0;
  std::vector<std::string> files, damaged;  ///< files whose check goes on; those that are damaged
};
VerificationStatus verificationStatus();

/// Throws Error(badInput) where a check of this process has found damage so far, whether its file is still open or not.
void requireNoDamage();

}  // namespace retrograd
