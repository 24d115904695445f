#include <array>
#include <bit>
#include <charconv>
#include <filesystem>
#include <optional>
#include <tuple>

#include "core/base/error.h"
#include "core/base/memory_account.h"
#include "core/formats/memory/snapshot_tables.h"
#include "core/formats/pickle/pickle_tokens.h"

namespace retrograd {
namespace {

using namespace pickle_opcodes;
namespace names = memory_reader;

/// What a value of the pickle is to a snapshot. Containers become what they hold as soon as they are filled, so that
/// the machine keeps a word for each value and nothing else.
enum class Tag : std::uint8_t {
  other,
  number,
  text,
  frame,
  stack,
  list,  ///< an empty list; its word has the slot of the memo that gets what it becomes
  dict,  ///< likewise
  event,
  events,
  block,
  blocks,
  segment,
  segments,
  devices,
  mark,
  marks,
  settings,
  divisions,
  pool,  ///< its name; 0: the common one, (0, 0)
  snapshot
};

/// A tag above and a number below, which may be negative.
class Word {
 public:
  Word() = default;
  Word(Tag tag, std::int64_t n = 0)
      : bits_(static_cast<std::uint64_t>(tag) << shift | (static_cast<std::uint64_t>(n) & mask)) {}
  Tag tag() const { return static_cast<Tag>(bits_ >> shift); }
  std::int64_t number() const { return static_cast<std::int64_t>(bits_ << (64 - shift)) >> (64 - shift); }
  std::uint32_t id() const { return static_cast<std::uint32_t>(bits_); }
  static bool fits(std::int64_t n) { return Word(Tag::number, n).number() == n; }

 private:
  static constexpr unsigned shift = 59;
  static constexpr std::uint64_t mask = (std::uint64_t{1} << shift) - 1;
  std::uint64_t bits_ = 0;
};

/// Python numbers remembered values from 0 on; each is kept in four bytes.
class Memo {
 public:
  std::size_t size() const { return count_; }
  void put(std::uint64_t slot, Word word) {
    if (slot > count_) badInput("pickle: remembers values out of order");
    if (slot == count_) {
      if (count_ % chunkSize == 0) chunks_.push_back(std::make_unique_for_overwrite<std::uint32_t[]>(chunkSize));
      ++count_;
    }
    if (word.id() >> idBits != 0) badInput("pickle: too many values");
    chunks_[slot / chunkSize][slot % chunkSize] = static_cast<std::uint32_t>(word.tag()) << idBits | word.id();
  }
  Word at(std::uint64_t slot) const {
    if (slot >= count_) badInput("pickle: refers to a value that was never stored");
    const auto kept = chunks_[slot / chunkSize][slot % chunkSize];
    return {static_cast<Tag>(kept >> idBits), kept & ((1U << idBits) - 1)};
  }

 private:
  static constexpr std::size_t chunkSize = std::size_t{1} << 16;
  static constexpr unsigned idBits = 27;
  std::vector<std::unique_ptr<std::uint32_t[]>> chunks_;
  std::size_t count_ = 0;
};

/// The fields of a dict that mean something.
struct Fields {
  std::array<Word, names::nameCount> words;
  std::uint64_t present = 0;

  bool has(names::Name name) const { return (present >> name & 1) != 0; }
};

class SnapshotMachine {
 public:
  SnapshotMachine(ByteStream& stream, const Progress& progress)
      : stream_(stream), progress_(progress), tokens_(stream), interner_(snapshot_) {}

  MemorySnapshot run() {
    constexpr std::uint64_t steps = 1 << 18;
    for (std::uint64_t count = 0;; ++count) {
      if (count % steps == 0) progress_.at("reading the history", stream_.fraction());
      if (count % 1024 == 0 && stack_.size() > maxStack) badInput("pickle: too many values");
      const auto opcode = tokens_.next();
      if (count == 0 && opcode != proto) refuse();
      if (opcode == stop) break;
      step(opcode);
    }
    if (take().tag() != Tag::snapshot) refuse();
    return std::move(snapshot_);
  }

 private:
  static constexpr std::size_t maxStack = 1'000'000;
  static constexpr int longRun = 1000;  // of values from the memo, between two looks at the stack's size

  [[noreturn]] static void refuse() {
    badInput("is not a snapshot of CUDA's allocator: write one with torch.cuda.memory._dump_snapshot(FILE)");
  }
  void push(Word word) { stack_.push(word); }
  Word take() { return stack_.take(); }
  void pushNumber(std::int64_t n) { push(Word::fits(n) ? Word(Tag::number, n) : Word(Tag::other)); }
  void pushTuple(int count) {
    for (; count > 0; --count) take();
    push(Tag::other);
  }
  /// Pairs of numbers name pools.
  void pushPair() {
    const auto second = take(), first = take();
    const bool areNumbers = first.tag() == Tag::number && second.tag() == Tag::number;
    push(areNumbers ? Word(Tag::pool, first.number() != 0 || second.number() != 0 ? 1 : 0) : Word(Tag::other));
  }
  void remember(std::uint64_t slot) {
    auto& top = stack_.top();
    const bool isOpen = top.tag() == Tag::list || top.tag() == Tag::dict;
    memo_.put(slot, isOpen || top.tag() == Tag::number ? Word(isOpen ? top.tag() : Tag::other) : top);
    if (isOpen) top = Word(top.tag(), static_cast<std::int64_t>(slot) + 1);
  }
  /// The container on top has become `word`.
  void become(Word word) {
    auto& top = stack_.top();
    if (const auto slot = slotOf(top)) memo_.put(*slot, word);
    top = word;
  }
  static std::optional<std::uint64_t> slotOf(Word open) {
    if ((open.tag() != Tag::list && open.tag() != Tag::dict) || open.number() == 0) return std::nullopt;
    return static_cast<std::uint64_t>(open.number() - 1);
  }

  void step(std::uint8_t opcode);
  void extendList(std::span<const Word> items);
  void extendStack(std::span<const Word> items);
  void extendEvents(std::span<const Word> items);
  void extendBlocks(std::span<const Word> items);
  void extendDevices(std::span<const Word> items);
  void fillDict(std::span<const Word> items);
  Word made(std::span<const Word> items);
  Word madeEvent();
  Word madeFrame();
  Word madeBlock();
  Word madeSegment();
  Word madeMark();
  Word madeSettings();
  Word madeDivisions(std::span<const Word> items);
  void finish();

  std::int64_t number(names::Name name, std::int64_t absent = 0) const {
    if (!fields_.has(name)) return absent;
    if (fields_.words[name].tag() != Tag::number)
      badInput("'" + std::string(snapshot_.text(StringId(name))) + "' is not a number of this size");
    return fields_.words[name].number();
  }
  std::uint64_t natural(names::Name name) const {
    const auto n = number(name);
    if (n < 0) badInput("'" + std::string(snapshot_.text(StringId(name))) + "' is negative");
    return static_cast<std::uint64_t>(n);
  }
  StringId text(names::Name name) const {
    if (!fields_.has(name) || fields_.words[name].tag() != Tag::text) return {};
    return StringId(fields_.words[name].id());
  }
  std::uint32_t stackOf(names::Name name) const {
    return fields_.has(name) && fields_.words[name].tag() == Tag::stack ? fields_.words[name].id() : 0;
  }

  ByteStream& stream_;
  const Progress& progress_;
  PickleTokens tokens_;
  MemorySnapshot snapshot_;
  names::Interner interner_;
  Memo memo_;
  PickleStack<Word> stack_;
  Fields fields_;
  std::vector<MemoryEvent> pending_;  // events that no list has yet
  std::vector<EventLog> logs_;        // of each list of events
  std::vector<std::uint32_t> ids_;    // of the stack that is being made
  std::vector<std::vector<std::int32_t>> deviceLists_;
  std::vector<std::pair<std::size_t, std::size_t>> blockLists_;  // first and count
};

void SnapshotMachine::step(std::uint8_t opcode) {
  switch (opcode) {
    case proto:
      if (tokens_.integer() > 5) badInput("pickle: unknown protocol");
      return;
    case frame: return;
    case mark:
      if (stack_.marks() >= maxStack) badInput("pickle: too many values");
      stack_.mark();
      return;
    case popMark: stack_.takeToMark(); return;
    case pop: take(); return;
    case binInt:
    case binInt1:
    case binInt2: push({Tag::number, tokens_.integer()}); return;
    case long1:
      if (tokens_.text().empty()) pushNumber(tokens_.integer());
      else push(Tag::other);
      return;
    case newTrue: push({Tag::number, 1}); return;
    case newFalse: push({Tag::number, 0}); return;
    case none:
    case binFloat:
    case emptyTuple: push(Tag::other); return;
    case binUnicode:
    case binUnicode8:
    case shortBinUnicode:
    case shortBinString: push({Tag::text, interner_.text(tokens_.text())}); return;
    case shortBinBytes:
    case binBytes: push(Tag::other); return;
    case tuple:
      stack_.takeToMark();
      push(Tag::other);
      return;
    case tuple1: pushTuple(1); return;
    case tuple2: pushPair(); return;
    case tuple3: pushTuple(3); return;
    case emptyList: push(Tag::list); return;
    case emptyDict: push(Tag::dict); return;
    case append: {
      const auto item = take();
      extendList({&item, 1});
      return;
    }
    case appends: extendList(stack_.takeToMark()); return;
    case setItem: {
      const auto value = take();
      const std::array<Word, 2> pair{take(), value};
      fillDict(pair);
      return;
    }
    case setItems: fillDict(stack_.takeToMark()); return;
    case binPut:
    case longBinPut: remember(static_cast<std::uint64_t>(tokens_.integer())); return;
    case memoize: remember(memo_.size()); return;
    case binGet:
    case longBinGet:
      push(memo_.at(static_cast<std::uint64_t>(tokens_.integer())));
      for (int more = 0; more < longRun && tokens_.nextIsGet(); ++more)
        push(memo_.at(static_cast<std::uint64_t>(tokens_.integer())));
      return;
    case global:
      badInput("pickle: refuses to create a " + std::string(tokens_.text()) + "." + std::string(tokens_.name()));
    default: badInput("pickle: opcode " + std::to_string(opcode) + " is not one that a snapshot needs");
  }
}

void SnapshotMachine::extendList(std::span<const Word> items) {
  if (items.empty()) return;
  switch (items.front().tag()) {
    case Tag::frame: return extendStack(items);
    case Tag::event: return extendEvents(items);
    case Tag::block: return extendBlocks(items);
    case Tag::segment: return become(Tag::segments);
    case Tag::mark: return become(Tag::marks);
    case Tag::list:
    case Tag::events: return extendDevices(items);
    default: return become(Tag::other);
  }
}

void SnapshotMachine::extendStack(std::span<const Word> items) {
  ids_.clear();
  if (stack_.top().tag() == Tag::stack) {  // a long one, in parts
    const auto before = snapshot_.stack(stack_.top().id());
    ids_.assign(before.begin(), before.end());
  }
  for (const auto item : items) {
    if (item.tag() != Tag::frame) return become(Tag::other);
    ids_.push_back(item.id());
  }
  become({Tag::stack, interner_.stack(ids_)});
}

void SnapshotMachine::extendEvents(std::span<const Word> items) {
  if (stack_.top().tag() != Tag::events) {
    if (logs_.size() >= 4096) badInput("it has more than 4096 devices");
    logs_.emplace_back();
    become({Tag::events, std::ssize(logs_) - 1});
  }
  auto& log = logs_[stack_.top().id()];
  for (const auto item : items) {
    if (item.tag() != Tag::event || item.id() >= pending_.size())
      badInput("its history holds something besides events");
    log.add(pending_[item.id()]);
  }
  pending_.clear();
}

void SnapshotMachine::extendBlocks(std::span<const Word> items) {
  if (stack_.top().tag() != Tag::blocks) {
    chargeReading(sizeof(blockLists_[0]));
    blockLists_.emplace_back(items.front().id(), 0);
    become({Tag::blocks, std::ssize(blockLists_) - 1});
  }
  auto& [first, count] = blockLists_[stack_.top().id()];
  for (const auto item : items)
    if (item.tag() != Tag::block || item.id() != first + count++) badInput("a segment's blocks are out of order");
}

void SnapshotMachine::extendDevices(std::span<const Word> items) {
  if (stack_.top().tag() != Tag::devices) {
    deviceLists_.emplace_back();
    become({Tag::devices, std::ssize(deviceLists_) - 1});
  }
  auto& list = deviceLists_[stack_.top().id()];
  if (list.size() + items.size() > 4096) badInput("it has more than 4096 devices");
  for (const auto item : items) list.push_back(item.tag() == Tag::events ? static_cast<std::int32_t>(item.id()) : -1);
}

void SnapshotMachine::fillDict(std::span<const Word> items) {
  if (items.size() % 2 != 0) badInput("pickle: a key without a value");
  if (stack_.top().tag() == Tag::dict) become(made(items));
}

Word SnapshotMachine::made(std::span<const Word> items) {
  fields_.present = 0;
  for (std::size_t i = 0; i < items.size(); i += 2)
    if (items[i].tag() == Tag::text && items[i].id() < names::nameCount) {
      fields_.words[items[i].id()] = items[i + 1];
      fields_.present |= std::uint64_t{1} << items[i].id();
    }
  if (fields_.has(names::action)) return madeEvent();
  if (fields_.has(names::filename)) return madeFrame();
  if (fields_.has(names::blocks)) return madeSegment();
  if (fields_.has(names::state)) return madeBlock();
  if (fields_.has(names::deviceTraces) || fields_.has(names::segments)) {
    finish();
    return Tag::snapshot;
  }
  if (fields_.has(names::stage)) return madeMark();
  if (fields_.has(names::maxSplitSize) || fields_.has(names::expandableSegments)) return madeSettings();
  return madeDivisions(items);
}

Word SnapshotMachine::madeEvent() {
  MemoryEvent event;
  const auto action = text(names::action);
  if (!action) badInput("an event whose action is not a text");
  const auto known = static_cast<std::uint32_t>(action.index) - names::nameCount;
  event.action =
      known < static_cast<std::uint32_t>(MemoryAction::other) ? static_cast<MemoryAction>(known) : MemoryAction::other;
  event.address = natural(fields_.has(names::addr) ? names::addr : names::deviceFree);
  event.size = natural(names::size);
  event.stream = number(names::stream);
  event.time = number(names::timeUs);
  MemoryPlace place{stackOf(names::frames), text(names::compileContext), text(names::userMetadata)};
  if (snapshot_.text(place.compile) == "N/A") place.compile = {};
  if (snapshot_.text(place.note).empty()) place.note = {};
  event.place = interner_.place(place);
  if (pending_.size() >= maxStack) badInput("pickle: too many values");
  pending_.push_back(event);
  return {Tag::event, std::ssize(pending_) - 1};
}

Word SnapshotMachine::madeFrame() {
  const auto given = fields_.has(names::line) ? fields_.words[names::line] : Word();
  const bool isLine = given.tag() == Tag::number && given.number() >= 0 && given.number() <= 0x7fffffff;
  return {Tag::frame,
          interner_.frame({text(names::name), text(names::filename),
                           isLine ? static_cast<std::int32_t>(given.number()) : 0, text(names::fxNodeName)})};
}

Word SnapshotMachine::madeBlock() {
  MemoryBlock block;
  block.address = natural(names::address);
  block.size = natural(names::size);
  block.requested = fields_.has(names::requestedSize) ? natural(names::requestedSize) : block.size;
  const auto state = snapshot_.text(text(names::state));
  block.state = state == "inactive"           ? MemoryBlock::State::inactive
                : state == "active_allocated" ? MemoryBlock::State::active
                                              : MemoryBlock::State::awaitingFree;
  block.stack = stackOf(names::frames);
  interner_.place({block.stack, {}, {}});  // of blocks that are older than the history
  chargeReading(2 * sizeof(block));
  snapshot_.blocks.push_back(block);
  return {Tag::block, std::ssize(snapshot_.blocks) - 1};
}

Word SnapshotMachine::madeSegment() {
  MemorySegment segment;
  segment.device = number(names::device);
  segment.stream = number(names::stream);
  segment.address = natural(names::address);
  segment.size = natural(names::totalSize);
  segment.small = snapshot_.text(text(names::segmentType)) == "small";
  segment.expandable = number(names::isExpandable) != 0;
  if (fields_.has(names::segmentPool)) {
    const auto pool = fields_.words[names::segmentPool];
    segment.isPrivate = pool.tag() == Tag::pool && pool.number() != 0;
  }
  if (const auto list = fields_.words[names::blocks]; list.tag() == Tag::blocks)
    std::tie(segment.firstBlock, segment.blockCount) = blockLists_[list.id()];
  auto blocks = std::span(snapshot_.blocks).subspan(segment.firstBlock, segment.blockCount);
  if (!blocks.empty() && blocks.front().address == 0) {  // as PyTorch before 2.1 writes them: without addresses
    auto at = segment.address;
    for (auto& block : blocks) block.address = at, at += block.size;
  }
  chargeReading(2 * sizeof(segment));
  snapshot_.segments.push_back(segment);
  return {Tag::segment, 0};
}

Word SnapshotMachine::madeMark() {
  chargeReading(2 * sizeof(MemoryMark));
  snapshot_.marks.push_back(
      {number(names::device), number(names::timeUs), snapshot_.text(text(names::stage)) == "START", text(names::name)});
  return {Tag::mark, 0};
}

Word SnapshotMachine::madeSettings() {
  auto& settings = snapshot_.settings;
  settings.text = text(names::allocConf);
  settings.maxSplitSize = number(names::maxSplitSize, -1);
  settings.expandableSegments = number(names::expandableSegments) != 0;
  return Tag::settings;
}

/// {'1': 0, '2': 0, ...}: from how many MiB on sizes are rounded to which part of a power of two.
Word SnapshotMachine::madeDivisions(std::span<const Word> items) {
  std::array<std::uint32_t, 16> divisions{};
  for (std::size_t i = 0; i < items.size(); i += 2) {
    if (items[i].tag() != Tag::text || items[i + 1].tag() != Tag::number) return Tag::other;
    const auto key = snapshot_.text(StringId(items[i].id()));
    std::uint32_t mib = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), mib);
    if (error != std::errc() || end != key.data() + key.size() || !std::has_single_bit(mib) || mib > 32768)
      return Tag::other;
    const auto part = items[i + 1].number();
    if (part < 0 || part > 0xffff) return Tag::other;
    divisions[std::countr_zero(mib)] = static_cast<std::uint32_t>(part);
  }
  snapshot_.settings.divisions = divisions;
  return Tag::divisions;
}

void SnapshotMachine::finish() {
  if (!snapshot_.events.empty()) badInput("it holds one snapshot inside another");
  const auto list = fields_.words[names::deviceTraces];
  if (!fields_.has(names::deviceTraces) || list.tag() != Tag::devices) {
    snapshot_.events.resize(1);
    return;
  }
  const auto& devices = deviceLists_[list.id()];
  for (const auto log : devices) snapshot_.events.push_back(log >= 0 ? std::move(logs_[log]) : EventLog());
}

}  // namespace

MemorySnapshot readMemorySnapshot(ByteStream& stream, const Progress& progress) {
  return SnapshotMachine(stream, progress).run();
}

std::unique_ptr<const MemorySnapshot> openMemorySnapshot(const std::string& path, const Progress& progress) {
  const auto stream = openByteStream(path);
  std::error_code unknown;
  const auto bytes = std::filesystem::file_size(path, unknown);
  const ReadingScope scope(unknown ? 0 : bytes);
  try {
    return std::make_unique<const MemorySnapshot>(readMemorySnapshot(*stream, progress));
  } catch (const Error& e) {
    throw e.place().empty() ? e.at(path) : e;
  }
}

}  // namespace retrograd
