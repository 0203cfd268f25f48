#pragma once

#include <kunci/testing.hpp>

bool takes_the_lock(kunci::testing::InMemoryServer& server, kunci::testing::ManualClock& clock);
