#include "core/cut/cuts.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "core/base/module_path.h"
#include "core/base/near_names.h"
#include "core/base/number_text.h"

namespace retrograd {
namespace {

/// Calls `visit` with the ops in the bodies of a higher-order op, and with those in theirs.
template <class Visit>
void forEachNested(const Document& document, BoundSymbolId op, const Visit& visit) {
  forEachBody(document, op, [&](SubgraphId body) {
    for (auto inner : document.subgraph(body).ops) {
      visit(inner);
      forEachNested(document, inner, visit);
    }
  });
}

std::string nameOf(const Document& document, BoundSymbolId op) {
  const auto& bound = document.boundSymbol(op);
  if (bound.name) return std::string(document.text(bound.name));
  const auto outputs = document.outputs(op);
  return !outputs.empty() && outputs[0] ? document.displayName(outputs[0]) : document.opName(op);
}

/// "h.3", "h.3:after", "#relu_4:before" in its parts.
struct Point {
  std::string text, target;
  bool isOp = false, isAfter = false;
};

Point parsePoint(const std::string& text) {
  Point point{text, text};
  if (const auto colon = text.rfind(':'); colon != std::string::npos) {
    const auto side = text.substr(colon + 1);
    if (side != "before" && side != "after")
      badUse("Unknown split point type '" + side + "'; there are before and after", "cut at " + text);
    point.isAfter = side == "after";
    point.target = text.substr(0, colon);
  }
  point.isOp = point.target.starts_with('#');
  if (point.isOp) point.target.erase(0, 1);
  if (point.target.empty())
    badUse("names neither a module nor an op; write MODULE or #OP, with :before or :after behind it",
           "cut at '" + text + "'");
  return point;
}

/// Finds the positions of points in one computation.
class PointFinder {
 public:
  PointFinder(const Document& document, const Computation& computation, const ModuleCalls& calls)
      : document_(document), ops_(computation.trace.ops), calls_(calls) {}

  void find(const Point& point, std::set<std::size_t>& cuts) const {
    point.isOp ? findOp(point, cuts) : findModule(point, cuts);
  }

 private:
  void findOp(const Point& point, std::set<std::size_t>& cuts) const {
    const auto id = numberIn<std::int32_t>(point.target);
    const auto isNamed = [&](BoundSymbolId op) {
      if (nameOf(document_, op) == point.target || (id && op.index == *id)) return true;
      const auto outputs = document_.outputs(op);
      return std::any_of(outputs.begin(), outputs.end(),
                         [&](ValueId id) { return id && document_.displayName(id) == point.target; });
    };
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (isNamed(ops_[i])) return void(cuts.insert(point.isAfter ? i + 1 : i));
      forEachNested(document_, ops_[i], [&](BoundSymbolId inner) {
        if (isNamed(inner)) throw regionError(point, ops_[i]);
      });
    }
    badUse("the computation has no op of this name, and none that makes a value of it", "cut at " + point.text);
  }

  void findModule(const Point& point, std::set<std::size_t>& cuts) const {
    bool any = false, inside = false;
    std::optional<int> call;
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      const bool isIn = belongs(point, ops_[i]);
      const auto now = isIn ? callOf(ops_[i], point.target) : std::nullopt;
      const bool begins = isIn && (!inside || now != call);
      if (inside && (!isIn || begins) && point.isAfter) cuts.insert(i);
      if (begins && !point.isAfter) cuts.insert(i);
      inside = isIn;
      call = now;
      any |= isIn;
    }
    if (inside && point.isAfter) cuts.insert(ops_.size());
    if (!any) throw notThere(point);
  }

  /// Whether the op ran in the module. Of a region all of it has to, for regions stay whole. Markers and what runs
  /// nothing do not count.
  bool belongs(const Point& point, BoundSymbolId op) const {
    if (isStageMarker(document_, op)) return false;
    if (isInModule(module(op), point.target)) return true;
    std::size_t within = 0, all = 0;
    forEachNested(document_, op, [&](BoundSymbolId inner) {
      ++all;
      within += isInModule(module(inner), point.target);
    });
    if (within != 0 && within != all) throw regionError(point, op);
    return within != 0;
  }

  std::optional<int> callOf(BoundSymbolId op, const std::string& path) const {
    const auto known = calls_.find(nameOf(document_, op));
    if (known == calls_.end()) return std::nullopt;
    const auto call = known->second.find(path);
    return call == known->second.end() ? std::nullopt : std::optional(call->second);
  }

  std::string_view module(BoundSymbolId op) const { return document_.text(document_.boundSymbol(op).module); }

  Error regionError(const Point& point, BoundSymbolId region) const {
    return Error(ErrorCode::badUse,
                 "it lies inside the region " + nameOf(document_, region) + " (" + document_.opName(region) +
                     "), which runs whole in one stage; cut before or behind #" + nameOf(document_, region),
                 "cut at " + point.text);
  }

  /// Python's words: the first part of the path that the model has nothing in.
  Error notThere(const Point& point) const {
    std::set<std::string, std::less<>> known;
    const auto add = [&](BoundSymbolId op) {
      const auto path = module(op);
      for (auto end = path.find('.'); end != std::string_view::npos; end = path.find('.', end + 1))
        known.emplace(path.substr(0, end));
      if (!path.empty()) known.emplace(path);
    };
    for (auto op : ops_) {
      add(op);
      forEachNested(document_, op, add);
    }
    std::string missing = point.target;
    for (auto end = point.target.find('.'); end != std::string::npos; end = point.target.find('.', end + 1))
      if (!known.contains(point.target.substr(0, end))) {
        missing = point.target.substr(0, end);
        break;
      }
    std::string text = "Specified target " + point.target + " referenced nonexistent module " + missing;
    const auto parent =
        missing.rfind('.') == std::string::npos ? std::string() : missing.substr(0, missing.rfind('.') + 1);
    std::string names;
    std::size_t count = 0;
    for (const auto& path : known)
      if (path.starts_with(parent) && path.find('.', parent.size()) == std::string::npos && ++count <= 8)
        names += (names.empty() ? "" : ", ") + path;
    if (!names.empty())
      text +=
          "; there are " + names + (count > 8 ? ", ..." : "") + " (only modules that compute something can be cut at)";
    return Error(ErrorCode::badUse, text + didYouMean(point.target, {known.begin(), known.end()}),
                 "cut at " + point.text);
  }

  const Document& document_;
  const std::vector<BoundSymbolId>& ops_;
  const ModuleCalls& calls_;
};

}  // namespace

bool isStageMarker(const Document& document, BoundSymbolId op) {
  return document.symbol(op).name == "pippy._pipe_split.default";
}

Cuts markedCuts(const Document& document, const Computation& computation) {
  Cuts cuts;
  for (std::size_t i = 0; i < computation.trace.ops.size(); ++i) {
    const auto op = computation.trace.ops[i];
    if (isStageMarker(document, op)) cuts.push_back(i);
    forEachNested(document, op, [&](BoundSymbolId inner) {
      if (isStageMarker(document, inner))
        badUse(
            "a stage marker (pippy._pipe_split) lies inside this region, which runs whole in one stage; move "
            "the marker out of it",
            nameOf(document, op) + " (" + document.opName(op) + ")");
    });
  }
  return cuts;
}

Cuts cutsAt(const Document& document, const Computation& computation, const std::vector<std::string>& points,
            const ModuleCalls& calls) {
  std::set<std::size_t> cuts;
  const PointFinder finder(document, computation, calls);
  for (const auto& point : points) finder.find(parsePoint(point), cuts);
  return {cuts.begin(), cuts.end()};
}

PointNames::PointNames(const Document& document, const Computation& computation) {
  const auto& ops = computation.trace.ops;
  std::unordered_map<std::string, std::size_t> found;  // the op that cutsAt() takes for a name
  for (std::size_t i = 0; i < ops.size(); ++i) {
    found.try_emplace(nameOf(document, ops[i]), i);
    for (auto id : document.outputs(ops[i]))
      if (id) found.try_emplace(document.displayName(id), i);
    forEachNested(document, ops[i], [&](BoundSymbolId inner) {
      found.try_emplace(nameOf(document, inner), ops.size());
      for (auto id : document.outputs(inner))
        if (id) found.try_emplace(document.displayName(id), ops.size());
    });
  }
  for (std::size_t i = 0; i < ops.size(); ++i) {
    auto name = nameOf(document, ops[i]);
    const bool isOwn =
        found.at(name) == i && name != document.opName(ops[i]) && name.find_first_of(":,") == std::string::npos;
    names_.push_back(isOwn ? std::move(name) : std::string());
  }
}

std::string PointNames::at(std::size_t position) const {
  const auto nameAt = [&](std::size_t op) { return op < names_.size() ? names_[op] : std::string(); };
  if (const auto name = nameAt(position); !name.empty()) return std::string(1, '#').append(name);
  if (const auto name = position > 0 ? nameAt(position - 1) : std::string(); !name.empty())
    return std::string(1, '#').append(name).append(":after");
  badUse("the ops around this place have no names of their own, by which the cut could be asked for",
         "cut at op " + std::to_string(position));
}

BoundSymbolId refusedOp(const Document& document, const Computation& computation, const Error& error) {
  for (const auto& text : {error.place(), error.message()})
    for (auto at = text.find('#'); at != std::string::npos; at = text.find('#', at + 1)) {
      const auto name = text.substr(at + 1, text.find_first_of(" ,;:", at) - at - 1);
      for (auto op : computation.trace.ops)
        if (nameOf(document, op) == name) return op;
    }
  return {};
}

}  // namespace retrograd
