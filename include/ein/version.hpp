// The version of these headers. Numbers that differ in the second place are not compatible.
#pragma once

#define EIN_VERSION_MAJOR 0
#define EIN_VERSION_MINOR 1
#define EIN_VERSION_PATCH 0
