// What nearly every window test includes and hardly ever changes.
#pragma once
#include <QtTest>

#include "views/precompiled.h"
