// What nearly every unit of the window includes and hardly ever changes; compiled once for all folders.
#pragma once
#include <QtWidgets>
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>
