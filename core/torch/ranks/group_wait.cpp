#define USE_DISTRIBUTED
#include "core/torch/ranks/group_wait.h"

#include <fmt/format.h>

#include <future>
#include <thread>

#include "core/base/error.h"

namespace retrograd {

using namespace std::chrono_literals;

std::string reasonOf(const std::exception& error) {
  auto text = messageOf(error);
  text = text.substr(0, std::min(text.find('\n'), text.find(". This is typically")));
  if (const auto end = text.find("] "); text.starts_with("[/") && end != text.npos) text.erase(0, end + 2);
  return text;
}

/// Whoever gave up said so before it went; a rank that died said nothing.
void GroupWait::giveUp(int peer, const std::string& trouble) const {
  const auto rank = peer == anyRank ? std::string("a rank") : fmt::format("rank {}", peer);
  throw Error(ErrorCode::execution,
              liveness_.explain(
                  peer, trouble.empty() ? trouble : fmt::format("{} is gone or does not answer: {}", rank, trouble)));
}

void GroupWait::requireHealth() const {
  if (liveness_.hasFailed()) giveUp(anyRank, {});
}

c10::intrusive_ptr<c10d::Work> GroupWait::begin(int peer,
                                                const std::function<c10::intrusive_ptr<c10d::Work>()>& start) const {
  requireHealth();
  try {
    return start();
  } catch (const std::exception& error) {
    giveUp(peer, reasonOf(error));
  }
}

void GroupWait::interruptible(c10d::Work& work, int peer) const {
  std::string trouble;
  {
    const Liveness::Interruption stop(liveness_, [&work] { work.abort(); });
    try {
      if (work.wait(limit_)) return;
    } catch (const std::exception& error) {
      trouble = reasonOf(error);
    }
  }
  giveUp(peer, trouble.empty() ? "the transfer was broken off" : trouble);
}

void GroupWait::polled(c10d::Work& work, int peer) const {
  requireHealth();
  std::string trouble = "it does not take part in time";
  try {
    const auto deadline = std::chrono::steady_clock::now() + limit_;
    while (!work.isCompleted() && goesOn(deadline)) std::this_thread::sleep_for(100us);
    if (work.isCompleted()) {
      if (const auto error = work.exception()) std::rethrow_exception(error);
      work.wait();  // NCCL's: what is asked of the GPU from now on comes behind it
      return;
    }
  } catch (const std::exception& error) {
    trouble = reasonOf(error);
  }
  giveUp(peer, trouble);
}

void GroupWait::leavable(std::function<void()> call, int peer) const {
  requireHealth();
  std::packaged_task<void()> task(std::move(call));
  auto done = task.get_future();
  std::thread thread(std::move(task));
  const auto deadline = std::chrono::steady_clock::now() + limit_;
  while (done.wait_for(1ms) != std::future_status::ready && goesOn(deadline)) {
  }
  if (done.wait_for(0ms) != std::future_status::ready) {
    thread.detach();
    giveUp(peer, "it does not take part in time");
  }
  thread.join();
  try {
    done.get();
  } catch (const std::exception& error) {
    giveUp(peer, reasonOf(error));
  }
}

}  // namespace retrograd
