// What nearly every test of core includes, compiled once for each program of tests.
#pragma once
#include <gtest/gtest.h>

#include "core/precompiled.h"
