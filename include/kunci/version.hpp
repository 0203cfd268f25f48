#pragma once

// The one place that holds the version; the build reads it from here.
#define KUNCI_VERSION_MAJOR 0
#define KUNCI_VERSION_MINOR 1
#define KUNCI_VERSION_PATCH 0
