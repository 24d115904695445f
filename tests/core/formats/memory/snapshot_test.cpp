#include "core/formats/memory/snapshot.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>

#include "core/base/error.h"
#include "tests/core/formats/memory/small_snapshot.h"

namespace retrograd {
namespace {

using test::SmallSnapshot;

std::string refusal(const std::string& pickle) {
  try {
    test::read(pickle);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::badInput);
    return e.what();
  }
  return "nothing failed";
}

std::vector<MemoryEvent> eventsOf(const MemorySnapshot& snapshot) {
  std::vector<MemoryEvent> events;
  EventLog::Cursor cursor(snapshot.events.at(0));
  for (MemoryEvent event; cursor.next(event);) events.push_back(event);
  return events;
}

TEST(MemorySnapshot, EventsSegmentsAndStacksAreRead) {
  const auto snapshot =
      test::read(SmallSnapshot()
                     .event({"segment_alloc", 1 << 20, 2 << 20})
                     .event({"alloc", 1 << 20, 700, {{"f", "/job/a.py", 3}, {"<module>", "/job/a.py", 9}}, 5})
                     .event({"free_requested", 1 << 20, 700, {}, 4})
                     .event({"oom", 77, 1 << 30})
                     .segment(1 << 20, 2 << 20, {{1024, 700}, {(2 << 20) - 1024, 0, false}})
                     .pickle());
  const auto events = eventsOf(snapshot);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[1].action, MemoryAction::alloc);
  EXPECT_EQ(events[1].address, 1u << 20);
  EXPECT_EQ(events[1].size, 700u);
  EXPECT_EQ(events[1].time, 5);
  EXPECT_EQ(events[2].time, 4);
  EXPECT_EQ(events[3].action, MemoryAction::outOfMemory);
  EXPECT_EQ(events[3].address, 77u);
  const auto stack = snapshot.stack(snapshot.places[events[1].place].stack);
  ASSERT_EQ(stack.size(), 2u);
  EXPECT_EQ(snapshot.text(snapshot.frames[stack[0]].function), "f");
  EXPECT_EQ(snapshot.frames[stack[1]].line, 9);
  ASSERT_EQ(snapshot.segments.size(), 1u);
  EXPECT_EQ(snapshot.segments[0].blockCount, 2u);
  EXPECT_EQ(snapshot.blocks[1].state, MemoryBlock::State::inactive);
}

TEST(MemorySnapshot, ALogGivesTheEventsThatWereAdded) {
  EventLog log;
  std::vector<MemoryEvent> added;
  std::uint64_t random = 1;
  const auto draw = [&] { return random = random * 6364136223846793005ULL + 1442695040888963407ULL, random >> 20; };
  for (int i = 0; i < 100'000; ++i) {
    MemoryEvent event;
    event.action = static_cast<MemoryAction>(draw() % 10);
    event.address = draw() % 2 ? draw() : 512;
    event.size = draw() % 3 ? draw() % 4096 : ~std::uint64_t{0};
    event.stream = draw() % 8 ? 0 : -static_cast<std::int64_t>(draw());
    event.time = static_cast<std::int64_t>(draw());
    event.place = static_cast<std::uint32_t>(draw() % 5 ? 3 : draw());
    added.push_back(event);
    log.add(event);
  }
  EventLog::Cursor cursor(log);
  MemoryEvent event;
  for (const auto& each : added) {
    ASSERT_TRUE(cursor.next(event));
    ASSERT_EQ(event.action, each.action);
    ASSERT_EQ(event.address, each.address);
    ASSERT_EQ(event.size, each.size);
    ASSERT_EQ(event.stream, each.stream);
    ASSERT_EQ(event.time, each.time);
    ASSERT_EQ(event.place, each.place);
  }
  EXPECT_FALSE(cursor.next(event));
  EXPECT_EQ(log.size(), added.size());
}

TEST(MemorySnapshot, OneThatIsCutOffAnywhereIsRefused) {
  const auto pickle =
      SmallSnapshot().event({"alloc", 4096, 512, {{"f", "a.py"}}}).segment(4096, 2 << 20, {{512, 512}}).pickle();
  for (std::size_t length = 0; length < pickle.size(); ++length)
    EXPECT_EQ(refusal(pickle.substr(0, length)), "pickle: cut off");
}

TEST(MemorySnapshot, HostilePicklesAreRefused) {
  using namespace std::string_literals;
  EXPECT_EQ(refusal("\x80\x04"
                    "cos\nsystem\n."),
            "pickle: refuses to create a os.system");
  EXPECT_EQ(refusal("\x80\x04]."),
            "is not a snapshot of CUDA's allocator: write one with torch.cuda.memory._dump_snapshot(FILE)");
  EXPECT_EQ(refusal("hi\n"s), refusal("\x80\x04K\x01."s)) << "a file of another kind says the same";
  EXPECT_EQ(refusal("\x80\x04h\x05."), "pickle: refers to a value that was never stored");
  EXPECT_EQ(refusal("\x80\x04]r\xff\xff\xff\x7f."s), "pickle: remembers values out of order");
  EXPECT_EQ(refusal("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f"s), "pickle: a text of more than 64 MiB");
  EXPECT_EQ(refusal("\x80\x04X\xff\xff\xff\x03 too short"s), "pickle: cut off");
  EXPECT_EQ(refusal("\x80\x04}(" + SmallSnapshot::text("action") + "u."), "pickle: a key without a value");
  EXPECT_EQ(refusal("\x80\x04}(" + SmallSnapshot::text("action") + SmallSnapshot::text("alloc") +
                    SmallSnapshot::text("size") + SmallSnapshot::text("x") + "u."),
            "'size' is not a number of this size");
}

TEST(MemorySnapshot, CompressedFilesAreReadAsTheyAre) {
  const test::TemporaryFolder folder;
  const auto pickle = SmallSnapshot().event({"alloc", 4096, 512}).pickle();
  const auto path = (folder.path / "memory.pickle.gz").string();
  const auto file = gzopen(path.c_str(), "wb");
  gzwrite(file, pickle.data(), static_cast<unsigned>(pickle.size()));
  gzclose(file);
  EXPECT_EQ(openMemorySnapshot(path)->events.at(0).size(), 1u);
  EXPECT_EQ(openMemorySnapshot(test::history("plain"))->events.at(0).size(), 1929u);

  auto half = test::contentOf(test::history("plain"));
  half.resize(half.size() / 2);
  std::ofstream(folder.path / "half.pickle.xz", std::ios::binary) << half;
  try {
    openMemorySnapshot((folder.path / "half.pickle.xz").string());
    ADD_FAILURE() << "nothing failed";
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "xz: the file is damaged or cut off");
    EXPECT_EQ(e.place(), (folder.path / "half.pickle.xz").string());
  }
}

}  // namespace
}  // namespace retrograd
