#pragma once
// Words of the filter language; only the filter's own files include this.
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/trace/filter/filter.h"

namespace retrograd {

std::optional<Filter::Field> filterField(std::string_view name);
std::span<const std::string_view> filterFields();
/// "op, module, dtype, ..." for messages.
std::string filterFieldNames();

/// Roles of ops, "computation" for those without, and "backward" for all that only a backward has.
std::span<const std::string_view> filterRoles();
bool isFilterRole(std::string_view name);
std::string filterRoleNames();

/// Dimensions of a shape pattern: a number, -1 for any one, -2 for any number of them. "4x8", "[4, *]", "4x...", "[]".
std::optional<std::vector<std::int64_t>> parseShapePattern(std::string_view text);
bool matchesShape(std::span<const std::int64_t> pattern, std::span<const std::int64_t> sizes);

}  // namespace retrograd
