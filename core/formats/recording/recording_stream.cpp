#include "core/formats/recording/recording_stream.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/memory_account.h"
#include "core/formats/recording/recording_arguments.h"
#include "core/formats/recording/recording_hash.h"

namespace retrograd::recording {
namespace {

constexpr std::int64_t version = 1;

/// Records of one kind are numbered from 0 without gaps, so that no table grows beyond the stream.
template <class Table>
void requireNext(const Json& record, const Table& table) {
  if (const auto id = record.at("id").integer(); id < 0 || static_cast<std::size_t>(id) != table.size())
    badInput(fmt::format("has the id {} where {} follows", id, table.size()));
}

std::vector<std::int64_t> integersOf(const Json& list) {
  std::vector<std::int64_t> integers;
  chargeReading(list.items().size() * sizeof(std::int64_t));
  for (const auto& item : list.items()) integers.push_back(item.integer());
  return integers;
}

/// The ranks of a mesh, nested by dimension, row by row.
void readMesh(const Json& mesh, std::size_t depth, RecordedShard& shard) {
  constexpr std::size_t deepest = 8;
  if (depth == 0 && mesh.isArray() && mesh.items().empty()) return;  // a plain tensor
  if (!mesh.isArray()) return shard.mesh.push_back(mesh.integer());
  if (depth >= deepest) badInput("a mesh of more than 8 dimensions");
  if (depth == shard.meshSizes.size()) shard.meshSizes.push_back(std::ssize(mesh.items()));
  if (shard.meshSizes[depth] != std::ssize(mesh.items())) badInput("a mesh whose rows are of different lengths");
  for (const auto& one : mesh.items()) readMesh(one, depth + 1, shard);
}

/// Bytes from the storage's begin to the last element that a view reaches; nothing where that cannot be counted in
/// bytes.
std::optional<std::int64_t> reachOf(const TensorMeta& meta) {
  std::int64_t last = meta.offset, reach = 0;
  if (meta.offset < 0) return std::nullopt;
  bool isEmpty = false;
  for (std::size_t i = 0; i < meta.sizes.size(); ++i) {
    if (meta.sizes[i] < 0 || meta.strides[i] < 0) return std::nullopt;
    isEmpty |= meta.sizes[i] == 0;
    std::int64_t way = 0;
    if (meta.sizes[i] > 0 &&
        (__builtin_mul_overflow(meta.sizes[i] - 1, meta.strides[i], &way) || __builtin_add_overflow(last, way, &last)))
      return std::nullopt;
  }
  std::int64_t elements = itemSize(meta.dtype);  // its bytes are a number, too, however often it shows an element
  for (const auto size : meta.sizes)
    if (!isEmpty && __builtin_mul_overflow(elements, size, &elements)) return std::nullopt;
  if (isEmpty) return 0;
  if (__builtin_add_overflow(last, 1, &reach) || __builtin_mul_overflow(reach, itemSize(meta.dtype), &reach))
    return std::nullopt;
  return reach;
}

DType dtypeOf(const Json& record) {
  const auto text = record.at("dtype").text();
  const auto dtype = dtypeFromTorchName(text);
  if (!dtype) badInput(fmt::format("there is no dtype '{}'", text));
  return *dtype;
}

}  // namespace

StorageRow& StreamReader::storage(std::int64_t number) { return entryOf(storages_, number, "storage"); }
TensorRow& StreamReader::tensor(std::int64_t number) { return entryOf(tensors_, number, "tensor"); }

void StreamReader::readStorage(const Json& record) {
  requireNext(record, storages_);
  StorageRow row;
  row.bytes = record.at("bytes").integer();
  if (row.bytes < 0) badInput("a storage of less than no bytes");
  row.device = record.at("device").text();
  row.data = record.textAt("data");
  if (!row.data.empty()) {
    const auto found = recording_.data.find(row.data);
    if (found != recording_.data.end() && std::cmp_not_equal(found->second.bytes, row.bytes))
      badInput(
          fmt::format("data '{}' has {} bytes where the storage has {}", row.data, found->second.bytes, row.bytes));
  }
  if (const auto why = record.textAt("missing"); !why.empty()) recording_.missing.emplace_back(storages_.size(), why);
  row.id = document_.addStorage(row.bytes);
  storages_.push_back(std::move(row));
}

void StreamReader::readTensor(const Json& record) {
  requireNext(record, tensors_);
  TensorRow row;
  row.meta.dtype = dtypeOf(record);
  row.meta.sizes = integersOf(record.at("sizes"));
  if (const Json* parts = record.find("parts")) {
    const auto layout = layoutNamed(record.at("layout").text());
    if (!layout || *layout == Layout::strided) badInput("a tensor of parts of an unknown layout");
    row.meta.layout = *layout;
    row.coalesced = record.isTrue("coalesced");
    for (const auto& [part, number] : parts->members()) {
      const auto& part_ = tensor(number.integer());
      row.meta.device = part_.meta.device;
      row.parts.emplace(part, number.integer());
    }
    for (const auto size : row.meta.sizes)
      if (size < 0) badInput("a size of less than nothing");
  } else {
    row.storage = record.at("storage").integer();
    const auto& memory = storage(row.storage);
    row.meta.offset = record.at("offset").integer();
    row.meta.strides = integersOf(record.at("strides"));
    row.meta.device = deviceFromString(memory.device);
    row.meta.conjugate = record.isTrue("conj");
    row.meta.negative = record.isTrue("neg");
    if (row.meta.strides.size() != row.meta.sizes.size()) badInput("sizes and strides are of different lengths");
    const auto reach = reachOf(row.meta);
    if (!reach || *reach > memory.bytes)
      badInput(fmt::format("tensor {} reaches beyond storage {}, which has {} bytes", tensors_.size(), row.storage,
                           memory.bytes));
  }
  tensors_.push_back(std::move(row));
}

void StreamReader::readName(const Json& record) {
  auto& row = storage(record.at("storage").integer());
  if (!row.role.empty()) {  // the first name that it had, but for gradients of shards, which can share their memory
    if (row.role == "gradient" && record.at("role").text() == row.role) row.also.emplace_back(record.at("name").text());
    return;
  }
  row.role = record.at("role").text();
  row.name = record.at("name").text();
  row.state = record.textAt("state");
}

void StreamReader::readShard(const Json& record) {
  const auto& part = tensor(record.at("t").integer());
  if (part.storage < 0) badInput("a part of a DTensor that is sparse");
  RecordedShard shard{.storage = storage(part.storage).id,
                      .meta = part.meta,
                      .role = std::string(record.at("role").text()),
                      .name = std::string(record.at("name").text()),
                      .state = std::string(record.textAt("state")),
                      .sizes = integersOf(record.at("sizes"))};
  readMesh(record.at("mesh"), 0, shard);
  for (const auto& one : record.at("placements").items()) shard.placements.emplace_back(one.text());
  if (const Json* dims = record.find("dims"))
    for (const auto& one : dims->items()) shard.dims.emplace_back(one.text());
  if (shard.placements.size() != shard.meshSizes.size() ||
      (!shard.dims.empty() && shard.dims.size() != shard.meshSizes.size()))
    badInput("a mesh has another number of dimensions than of placements");
  recording_.shards.push_back(std::move(shard));
}

void StreamReader::readFrame(const Json& record) {
  requireNext(record, frames_);
  const auto line = record.at("line").integer();
  frames_.push_back({std::string(record.at("file").text()),
                     static_cast<int>(std::clamp<std::int64_t>(line, 0, 1 << 30)),
                     std::string(record.at("function").text()), std::string(record.textAt("code"))});
}

void StreamReader::readStack(const Json& record) {
  requireNext(record, stacks_);
  SourceStack stack;
  const auto frames = record.at("frames").items();
  chargeReading(frames.size() * sizeof(SourceFrame));
  for (const auto& frame : frames) stack.push_back(entryOf(frames_, frame.integer(), "frame"));
  stacks_.push_back(document_.internSource(stack));
}

void StreamReader::readMode(const Json& record) {
  gradMode_ = record.at("grad").boolean();
  const auto phase = phaseNamed(record.at("phase").text());
  current_.phase = phase.value_or(Phase::other);
}

/// What the backward begins with: PyTorch makes ones of the loss's shape just before.
void StreamReader::readBackward(const Json& record) {
  if (!backwardBegan_) {
    backwardBegan_ = true;
    recording_.forwardCount = recording_.ops.size();
  }
  ++current_.backward;
  if (const Json* inEval = record.find("eval"))
    for (const auto& path : inEval->items()) recording_.inEval[current_.backward].emplace_back(path.text());
  awaitsLoss_ = true;
  if (recording_.ops.empty()) return;
  const BoundSymbolId last(std::ssize(recording_.ops) - 1);
  const auto operands = document_.operands(last);
  if (document_.symbol(last).name != "aten.ones_like.default" || operands.empty()) return;
  if (document_.isTensor(operands[0])) recording_.losses.push_back(operands[0]);
  awaitsLoss_ = false;
}

/// Where backward was given a gradient: the single number that the first op with a link differentiates.
void StreamReader::findLoss(BoundSymbolId op) {
  const auto& recorded = recording_.op(op);
  const auto from = document_.boundSymbol(op).origin.op;
  if (!awaitsLoss_ || recorded.phase != Phase::backward || !from) return;
  awaitsLoss_ = false;
  const auto outputs = document_.outputs(from);
  if (outputs.empty() || !document_.isTensor(outputs[0])) return;
  const auto& meta = document_.meta(outputs[0]);
  if (meta.elements() == 1 && isDifferentiable(meta.dtype)) recording_.losses.push_back(outputs[0]);
}

void StreamReader::readHashes(const Json& record) {
  for (const auto& late : record.at("of").items()) {
    const auto pair = late.items();
    if (pair.size() != 2) badInput("hashes are pairs of an op and a list");
    const auto& op = recording_.op(opNumbered(pair[0].integer()));
    const auto hashes = pair[1].items();
    if (hashes.size() != op.checkCount) badInput("an op has another number of hashes than of results");
    for (std::size_t i = 0; i < hashes.size(); ++i)
      if (!hashes[i].isNull()) recording_.checks[op.checksBegin + i].hash = parseRecordingHash(hashes[i].text());
  }
}

void StreamReader::read(const Json& record) {
  const auto kind = record.at("k").text();
  if (!begun_) {
    if (kind != "begin") badInput("does not begin with its version");
    if (const auto found = record.at("version").integer(); found > version)
      badInput(fmt::format("the recording is of version {}; this Retrograd reads version {}", found, version));
    begun_ = true;
    return;
  }
  if (kind == "op") return readOp(record);
  if (kind == "tensor") return readTensor(record);
  if (kind == "storage") return readStorage(record);
  if (kind == "name") return readName(record);
  if (kind == "shard") return readShard(record);
  if (kind == "frame") return readFrame(record);
  if (kind == "stack") return readStack(record);
  if (kind == "mode") return readMode(record);
  if (kind == "hashes") return readHashes(record);
  if (kind == "backward") return readBackward(record);
  if (kind == "module") {
    requireNext(record, modules_);
    const auto path = record.at("path").text();
    modules_.push_back(path.empty() ? StringId() : document_.intern(path));
  } else if (kind == "step") {
    current_.step = static_cast<std::int32_t>(std::clamp<std::int64_t>(record.at("n").integer(), 0, 1 << 30));
  } else if (kind == "external") {
    readPut(record.at("storage").integer(), std::string(record.at("data").text()), record, "recorded.written.default");
  } else if (kind == "arrived") {
    const auto& arrived = tensor(record.at("t").integer());
    if (const auto data = record.textAt("data"); !data.empty() && storage(arrived.storage).base) {
      readPut(arrived.storage, std::string(data), record, "recorded.arrived.default");
      recording_.ops.back().arrivedOf = opNumbered(record.at("of").integer());
    }
  } else if (kind == "resized") {
    auto& row = storage(record.at("id").integer());
    row.bytes = std::max(row.bytes, record.at("bytes").integer());
  } else if (kind == "error") {
    recording_.error = fmt::format("{}: {}", record.textAt("op"), record.textAt("message"));
  } else if (kind == "end") {
    ended_ = true;
    if (auto error = record.textAt("error"); !error.empty()) recording_.error = error;
  }
}

}  // namespace retrograd::recording
