#include "core/layout/labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/op_name.h"
#include "core/layout/tree_passes.h"

namespace retrograd::layout {
namespace {

std::string typeOf(const Document& document, ValueId value) {
  const auto meta = value ? document.value(value).meta : MetaId();
  if (!meta) return {};
  const auto comment = typeComment(document.meta(meta));
  const auto space = comment.find(' ');
  return space == std::string::npos ? comment : comment.substr(space + 1);
}

/// The last part of a path, for parameters: "layer1.0.conv1.weight" -> "weight".
std::string lastPart(std::string_view path) {
  const auto dot = path.rfind('.');
  return std::string(dot == std::string_view::npos ? path : path.substr(dot + 1));
}

std::string shorten(std::string text, std::size_t most) {
  if (text.size() <= most) return text;
  // Whole characters only: names are UTF-8.
  auto at = most - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) --at;
  return text.substr(0, at) + "\xe2\x80\xa6";
}

std::size_t lengthOf(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

Badge::Kind kindOf(ValueKind kind) {
  switch (kind) {
    case ValueKind::input: return Badge::Kind::input;
    case ValueKind::parameter: return Badge::Kind::parameter;
    case ValueKind::buffer: return Badge::Kind::buffer;
    case ValueKind::constant: return Badge::Kind::constant;
    case ValueKind::cotangent: return Badge::Kind::cotangent;
    case ValueKind::activation:
    case ValueKind::gradient: break;
  }
  return Badge::Kind::saved;
}

std::vector<Badge> badgesOf(const GraphTree& tree, BoundSymbolId op) {
  const auto& document = tree.document();
  std::vector<Badge> badges;
  for (auto operand : document.operands(op)) {
    if (!operand) continue;
    const auto& value = document.value(operand);
    if (tree.makerOf(operand) >= 0) continue;
    if (std::any_of(badges.begin(), badges.end(), [&](const Badge& known) { return known.value == operand; })) continue;
    auto text = lastPart(tree.valueName(operand));
    if (text.empty()) text = document.displayName(operand);
    badges.push_back({kindOf(value.kind), shorten(std::move(text), box::mostBadgeText), operand});
  }
  const auto& origin = document.boundSymbol(op).origin;
  for (auto output : document.outputs(op)) {
    if (!tree.isResult(output)) continue;
    const bool gradient = origin.role == Role::gradient || origin.role == Role::accumulation;
    if (gradient) {
      auto of = origin.value ? lastPart(tree.valueName(origin.value)) : std::string();
      badges.push_back({Badge::Kind::gradient,
                        shorten(of.empty() ? document.displayName(output) : std::move(of), box::mostBadgeText),
                        output});
    } else if (origin.role != Role::recompute && tree.kind() != TraceKind::forward) {
      badges.push_back({Badge::Kind::output, shorten(document.displayName(output), box::mostBadgeText), output});
    }
  }
  if (badges.size() > box::mostBadges) {
    const auto more = badges.size() - box::mostBadges + 1;
    badges.resize(box::mostBadges);
    badges.back().text = fmt::format("+{}", more);
  }
  return badges;
}

std::string opCount(std::int32_t ops) { return ops == 1 ? "1 op" : fmt::format("{} ops", ops); }

/// Whether the backward side of an operation is its forward ops once more.
bool onlyRecomputes(const GraphTree& tree, std::int32_t node) {
  for (auto i = node; i < tree.node(node).end; ++i)
    if (const auto& n = tree.node(i); n.kind == TreeNode::Kind::op && n.lane == Lane::backward &&
                                      tree.document().boundSymbol(n.op).origin.role != Role::recompute)
      return false;
  return true;
}

std::string operationTitle(const GraphTree& tree, std::int32_t node, Lane lane) {
  const auto& n = tree.node(node);
  const auto& document = tree.document();
  std::string title;
  if (n.op) title = bareOpName(document.symbol(n.op).name);
  else if (n.ops[lane] > 0) title = "ops";
  if (lane == Lane::forward) return title;
  return title + (onlyRecomputes(tree, node) ? " recomputed" : " backward");
}

/// "0 … 10, 11 times" without spaces and words: how many there are is what must not be cut off.
std::string briefTitle(const GraphTree& tree, std::int32_t node, Lane lane) {
  std::string names(tree.label(node));
  std::erase(names, ' ');
  return fmt::format("{}{} \xc3\x97{}", lane == Lane::backward ? "\xe2\x88\x87" : "", names,
                     tree.node(node).childCount);
}

}  // namespace

BoundSymbolId onlyOp(const GraphTree& tree, std::int32_t node, Lane lane) {
  const auto& n = tree.node(node);
  if (n.kind == TreeNode::Kind::op) return n.lane == lane ? n.op : BoundSymbolId();
  if (n.kind != TreeNode::Kind::operation || n.ops[lane] != 1) return {};
  return tree.node(lane == Lane::forward ? node + 1 : n.end - 1).op;
}

BoxText boxText(const GraphTree& tree, std::int32_t node, Lane lane) {
  const auto& n = tree.node(node);
  const auto& document = tree.document();
  const auto ops = n.ops[lane];
  BoxText text;
  if (const auto op = onlyOp(tree, node, lane)) {
    text.title = bareOpName(document.symbol(op).name);
    const auto outputs = document.outputs(op);
    for (auto output : outputs)
      if (text.detail.empty()) text.detail = typeOf(document, output);
    text.badges = badgesOf(tree, op);
  } else if (n.kind == TreeNode::Kind::operation) {
    text.title = operationTitle(tree, node, lane);
    text.detail = opCount(ops);
  } else {
    text.title = tree.label(node).empty() ? "model" : std::string(tree.label(node));
    if (n.kind == TreeNode::Kind::run) text.title += fmt::format(", {} times", n.childCount);
    if (lane == Lane::backward) text.title.insert(0, "\xe2\x88\x87 ");
    text.detail = opCount(ops);
  }
  if (n.kind == TreeNode::Kind::operation && !tree.label(node).empty())
    text.title = std::string(tree.label(node)) + " \xc2\xb7 " + text.title;
  text.brief = n.kind == TreeNode::Kind::run ? briefTitle(tree, node, lane) : text.title;
  return text;
}

void measureBoxes(GraphTree& tree) {
  for (std::int32_t i = 0; i < tree.size(); ++i) {
    auto& n = tree.nodes_[i];
    bool badges = false;
    for (auto lane : {Lane::forward, Lane::backward}) {
      if (n.ops[lane] == 0) continue;
      const auto text = boxText(tree, i, lane);
      auto width = box::titleChar * static_cast<float>(lengthOf(text.title));
      width = std::max(width, box::detailChar * static_cast<float>(lengthOf(text.detail)));
      float line = 0;
      for (const auto& badge : text.badges) line += box::detailChar * static_cast<float>(lengthOf(badge.text) + 3);
      badges = badges || line > 0;
      width = std::max(width, line) + 2 * box::padX + (tree.canOpen(i) ? box::chevron : 0);
      n.width[lane] = std::clamp(std::ceil(width / box::step) * box::step, box::least, box::most);
    }
    n.height = 2 * box::padY + box::titleHeight + box::detailHeight + (badges ? box::badgeHeight : 0);
  }
}

}  // namespace retrograd::layout
