#include "core/trace/relocate.h"

#include <algorithm>

#include "core/base/id_vector.h"
#include "core/trace/op_traits.h"

namespace retrograd {
namespace {

bool movable(Device device) { return device.type == Device::Type::cpu || device.type == Device::Type::cuda; }

/// Literals of one call, the same for all that share its pattern and symbol.
class CallRewrite {
 public:
  CallRewrite(const Symbol& symbol, Device device) : symbol_(symbol), device_(device) {}

  /// Whether `pattern` changed.
  bool apply(CallPattern& pattern) const {
    bool changed = false;
    for (auto& argument : pattern.arguments) changed |= literals(argument);
    if (hasTrait(symbol_.name, OpTrait::setsAutocast)) changed |= autocast(pattern);
    if (device_.type != Device::Type::cpu) changed |= factory(pattern);
    return changed;
  }

 private:
  bool literals(Argument& argument) const {
    bool changed = false;
    if (argument.kind == Argument::Kind::device && movable(deviceFromString(argument.text)) &&
        argument.text != toString(device_)) {
      argument = Argument::ofDevice(toString(device_));
      changed = true;
    }
    for (auto& item : argument.items) changed |= literals(item);
    return changed;
  }

  /// The first argument is the kind of device: "cpu".
  bool autocast(CallPattern& pattern) const {
    const auto kind = toString(Device{device_.type, -1});
    if (pattern.arguments.empty() || pattern.arguments[0].kind != Argument::Kind::string ||
        pattern.arguments[0].text == kind)
      return false;
    if (!movable(deviceFromString(pattern.arguments[0].text))) return false;
    pattern.arguments[0].text = kind;
    return true;
  }

  bool factory(CallPattern& pattern) const {
    const auto absent = [](const Argument& a) {
      return a.kind == Argument::Kind::none || a.kind == Argument::Kind::missing;
    };
    const bool readsTensor = std::any_of(symbol_.arguments.begin(), symbol_.arguments.end(),
                                         [](const SchemaEntry& entry) { return entry.type.starts_with("Tensor"); });
    bool changed = false;
    for (std::size_t i = 0; i < symbol_.arguments.size(); ++i) {
      const auto& entry = symbol_.arguments[i];
      const bool given = i < pattern.arguments.size();
      if (entry.type == "Device?" && !readsTensor && (!given || absent(pattern.arguments[i]))) {
        while (pattern.arguments.size() <= i) pattern.arguments.push_back(Argument::ofMissing());
        pattern.arguments[i] = Argument::ofDevice(toString(device_));
        changed = true;
      }
      // Only memory of the host can be pinned.
      if (given && entry.name == "pin_memory" && pattern.arguments[i].kind == Argument::Kind::boolean &&
          pattern.arguments[i].integer != 0) {
        pattern.arguments[i] = Argument::ofBool(false);
        changed = true;
      }
    }
    return changed;
  }

  const Symbol& symbol_;
  const Device device_;
};

}  // namespace

Device withIndex(Device device) {
  if (device.type == Device::Type::cuda && device.index < 0) device.index = 0;
  return device;
}

void relocate(Document& document, Device device) {
  IdVector<MetaId, MetaId> moved(document.metaCount());
  for (auto id : moved.ids()) {
    moved[id] = id;
    if (!movable(document.meta(id).device) || document.meta(id).device == device) continue;
    auto meta = document.meta(id);
    meta.device = device;
    moved[id] = document.internMeta(meta);
  }
  for (auto id : document.valueIds()) {
    auto& value = document.value(id);
    if (value.meta) value.meta = moved[value.meta];
  }
  std::unordered_map<std::uint64_t, PatternId> rewritten;  // by symbol and pattern
  for (const auto op : document.boundSymbolIds()) {
    auto& bound = document.boundSymbol(op);
    const auto key =
        static_cast<std::uint64_t>(bound.symbol.index) << 32 | static_cast<std::uint32_t>(bound.pattern.index);
    const auto [known, isNew] = rewritten.try_emplace(key, bound.pattern);
    if (isNew) {
      CallPattern pattern = document.pattern(bound.pattern);
      if (CallRewrite(document.symbol(bound.symbol), device).apply(pattern))
        known->second = document.internPattern(pattern);
    }
    bound.pattern = known->second;
  }
}

Device deviceOf(const Document& document, const std::vector<ValueId>& values) {
  for (auto id : values)
    if (id && document.isTensor(id))
      if (const auto device = document.meta(id).device; device.type != Device::Type::cpu) return device;
  return {};
}

}  // namespace retrograd
