// What nearly every unit of the window includes and hardly ever changes; compiled once for all folders.
#pragma once
#include <QtWidgets>
#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>
