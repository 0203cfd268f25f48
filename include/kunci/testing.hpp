#pragma once

// Testing an application that uses kunci, without Redis and without waiting.

#include <kunci/testing/faulty_connection.hpp>
#include <kunci/testing/in_memory_server.hpp>
#include <kunci/testing/manual_clock.hpp>
