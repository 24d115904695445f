#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/memory/snapshot.h"
#include "tests/core/formats/cases.h"

namespace retrograd::test {

/// Snapshots as Python pickles them, written by hand.
class SmallSnapshot {
 public:
  struct Frame {
    std::string function, file;
    int line = 1;
  };
  struct Event {
    std::string action;
    std::int64_t address = 0, size = 0;
    std::vector<Frame> frames;
    std::int64_t time = 0;
  };
  struct Block {
    std::int64_t size = 0, requested = 0;
    bool active = true;
  };

  SmallSnapshot& event(Event event) {
    events_ += dict({{"action", text(event.action)},
                     {event.action == "oom" ? "device_free" : "addr", number(event.address)},
                     {"size", number(event.size)},
                     {"stream", number(0)},
                     {"time_us", number(event.time)},
                     {"frames", stack(event.frames)}});
    return *this;
  }
  SmallSnapshot& segment(std::int64_t address, std::int64_t size, const std::vector<Block>& blocks, int device = 0) {
    std::string listed;
    const auto begin = address;
    for (const auto& block : blocks) {
      listed += dict({{"address", number(address)},
                      {"size", number(block.size)},
                      {"requested_size", number(block.requested)},
                      {"state", text(block.active ? "active_allocated" : "inactive")},
                      {"frames", stack({})}});
      address += block.size;
    }
    segments_ += dict({{"device", number(device)},
                       {"address", number(begin)},
                       {"total_size", number(size)},
                       {"stream", number(0)},
                       {"blocks", list(listed)}});
    return *this;
  }
  SmallSnapshot& setting(const std::string& name, const std::string& value) {
    settings_ += text(name) + value;
    return *this;
  }
  std::string pickle() const {
    return "\x80\x04" +
           dict({{"segments", list(segments_)},
                 {"device_traces", list(list(events_))},
                 {"allocator_settings", "}(" + text("max_split_size") + number(-1) + settings_ + "u"}}) +
           ".";
  }

  static std::string number(std::int64_t n) {
    std::string bytes("\x8a\x08", 2);
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>(n >> (8 * i));
    return bytes;
  }
  static std::string text(std::string_view text) {
    return "\x8c" + std::string(1, static_cast<char>(text.size())) + std::string(text);
  }
  static std::string list(const std::string& items) { return "](" + items + "e"; }
  static std::string dict(const std::vector<std::pair<std::string, std::string>>& items) {
    std::string all = "}(";
    for (const auto& [key, value] : items) all += text(key) + value;
    return all + "u";
  }

 private:
  static std::string stack(const std::vector<Frame>& frames) {
    std::string all;
    for (const auto& frame : frames)
      all += dict({{"name", text(frame.function)}, {"filename", text(frame.file)}, {"line", number(frame.line)}});
    return list(all);
  }

  std::string events_, segments_, settings_;
};

/// Bytes in memory as a stream that gives a few at a time.
class SmallStream final : public ByteStream {
 public:
  explicit SmallStream(std::string bytes, std::size_t most = 7) : bytes_(std::move(bytes)), most_(most) {}
  std::size_t read(char* to, std::size_t most) override {
    const auto count = std::min({most, most_, bytes_.size() - at_});
    bytes_.copy(to, count, at_);
    at_ += count;
    return count;
  }
  double fraction() const override { return 0; }

 private:
  std::string bytes_;
  std::size_t most_, at_ = 0;
};

inline MemorySnapshot read(const std::string& pickle) {
  SmallStream stream(pickle);
  return readMemorySnapshot(stream);
}

/// A real history that is kept with the tests.
inline std::string history(const std::string& name) { return sourcePath("tests/data/memory/" + name + ".pickle.xz"); }

}  // namespace retrograd::test
