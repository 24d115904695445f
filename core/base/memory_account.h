#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <utility>

namespace retrograd {

/// What reading one file may take in memory, and takes now. A small file can describe something huge (a compressed
/// record of zeros, a list of a million numbers of two characters each), so readers count what they lay out and give up
/// where it is out of proportion: `fixed` bytes plus `perByte` for each byte of the file. Real models take a tenth of
/// that. Mapped weights do not count.
class MemoryAccount {
 public:
  static constexpr std::uint64_t fixed = 256ULL << 20, perByte = 64;

  explicit MemoryAccount(std::uint64_t fileBytes) : limit_(fixed + perByte * fileBytes) {}
  std::uint64_t limit() const { return limit_; }
  /// Throws Error(badInput) where it becomes more than the limit.
  void charge(std::uint64_t bytes);
  void release(std::uint64_t bytes) { used_ -= bytes; }

  /// The account of the file that this thread reads; null outside of a ReadingScope.
  static const std::shared_ptr<MemoryAccount>& current();

 private:
  friend class ReadingScope;
  static std::shared_ptr<MemoryAccount>& slot();
  std::uint64_t limit_;
  std::atomic<std::uint64_t> used_{0};
};

/// While it lives, this thread reads a file of so many bytes.
class ReadingScope {
 public:
  explicit ReadingScope(std::uint64_t fileBytes)
      : before_(std::exchange(MemoryAccount::slot(), std::make_shared<MemoryAccount>(fileBytes))) {}
  ~ReadingScope() { MemoryAccount::slot() = std::move(before_); }
  ReadingScope(const ReadingScope&) = delete;
  ReadingScope& operator=(const ReadingScope&) = delete;

 private:
  std::shared_ptr<MemoryAccount> before_;
};

/// Memory that counts for the file that is read when it is made, as long as it is held. Outside of a ReadingScope it is
/// plain memory.
class CountedMemory final : public std::pmr::memory_resource {
 public:
  CountedMemory() : account_(MemoryAccount::current()) {}

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (account_) account_->charge(bytes);
    try {
      return std::pmr::new_delete_resource()->allocate(bytes, alignment);
    } catch (...) {
      if (account_) account_->release(bytes);
      throw;
    }
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    if (account_) account_->release(bytes);
    std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  std::shared_ptr<MemoryAccount> account_;
};

/// Counts what a reader laid out and keeps for good, up to the end of the scope.
void chargeReading(std::uint64_t bytes);

}  // namespace retrograd
