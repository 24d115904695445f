#include "core/formats/checkpoint/saved_object.h"

#include "core/base/error.h"
#include "core/base/memory_account.h"
#include "core/formats/files/mapping_watch.h"
#include "core/formats/pickle/pickle.h"

namespace retrograd {
namespace {

using Kind = PickleValue::Kind;

std::string keyText(const PickleValue& key) {
  if (key.kind == Kind::string) return key.text;
  if (key.kind == Kind::integer || key.kind == Kind::boolean) return std::to_string(key.integer);
  return "?";
}

class Flattener {
 public:
  explicit Flattener(const Pickle& pickle) : pickle_(pickle) {}

  SavedObject run() {
    visit(pickle_.root);
    return std::move(result_);
  }

 private:
  void visit(std::uint32_t index) {
    constexpr std::size_t maxDepth = 100, maxLeaves = 2'000'000;
    const auto& value = pickle_.at(index);
    if (keys_.size() > maxDepth) badInput("values nested deeper than 100 levels");
    if (++visited_ > maxLeaves) badInput("more than two million values");
    switch (value.kind) {
      case Kind::dict:
        for (std::size_t i = 0; i + 1 < value.items.size(); i += 2)
          below(keyText(pickle_.at(value.items[i])), value.items[i + 1]);
        return;
      case Kind::list:
      case Kind::tuple:
        for (std::size_t i = 0; i < value.items.size(); ++i) below(std::to_string(i), value.items[i]);
        return;
      case Kind::tensor: result_.leaves.push_back({keys_, value.tensor, std::nullopt}); return;
      case Kind::integer: result_.leaves.push_back({keys_, std::nullopt, Argument::ofInt(value.integer)}); return;
      case Kind::boolean: result_.leaves.push_back({keys_, std::nullopt, Argument::ofBool(value.integer != 0)}); return;
      case Kind::real: result_.leaves.push_back({keys_, std::nullopt, Argument::ofReal(value.real)}); return;
      case Kind::object:
      case Kind::global: result_.others.push_back(place() + ": " + value.text); return;
      default: return;
    }
  }
  void below(std::string key, std::uint32_t index) {
    keys_.push_back(std::move(key));
    visit(index);
    keys_.pop_back();
  }
  std::string place() const {
    std::string text;
    for (const auto& key : keys_) text += (text.empty() ? "" : ".") + key;
    return text;
  }

  const Pickle& pickle_;
  SavedObject result_;
  std::vector<std::string> keys_;
  std::size_t visited_ = 0;
};

}  // namespace

SavedObject readSavedObject(ByteRegion bytes, const std::string& place, const Progress& progress) {
  const ReadingScope scope(bytes.size);
  const auto archive = Archive::open(std::move(bytes), place, progress);
  try {
    if (!archive->has("data.pkl")) badInput("is a zip archive without data.pkl: not written by torch.save");
    if (archive->has("byteorder") && archive->read("byteorder").text() == "big")
      badInput("holds big-endian data, which is not read");
    PickleRecord record;
    record.opaque = true;
    record.maxValues = 8'000'000;
    const auto pickle = readPickle(archive, record);
    return Flattener(pickle).run();
  } catch (const Error& e) {
    throw e.at(place);
  }
}

SavedObject readSavedObject(const std::string& path, const Progress& progress) {
  const auto bytes = mapFile(path);
  return readUnchanged(bytes.data, [&] { return readSavedObject(bytes, path, progress); });
}

}  // namespace retrograd
