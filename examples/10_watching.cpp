// What happens to the locks, for logs and metrics: an observer sees all of it, but never the secret token.
#include <kunci/hiredis.hpp>
#include <kunci/kunci.hpp>

#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>

using namespace std::chrono_literals;

namespace {

// [observer]
class Counter final : public kunci::Observer {
  public:
    void on_event(const kunci::Event& event) override {
        const std::lock_guard lock{mutex_};  // called from several threads
        ++counts_[event.kind];
        if (event.error)
            std::printf("%s: %s\n", std::string{event.key}.c_str(), event.error.message().c_str());
    }
    [[nodiscard]] int count(kunci::Event::Kind kind) {
        const std::lock_guard lock{mutex_};
        return counts_[kind];
    }

  private:
    std::mutex mutex_;
    std::map<kunci::Event::Kind, int> counts_;
};
// [/observer]

}  // namespace

int main(int argc, char** argv) {
    const char* url = argc > 1 ? argv[1] : "redis://127.0.0.1:6379/0";
    Counter counter;
    kunci::DistributedLock locks{kunci::HiredisConnection{url}, {.observer = &counter}};
    {
        auto guard = locks.lock("watched", {.ttl = 5s});
        static_cast<void>(locks.try_lock("watched"));
    }
    const bool seen = counter.count(kunci::Event::Kind::acquired) == 1 &&
                      counter.count(kunci::Event::Kind::refused) == 1 &&
                      counter.count(kunci::Event::Kind::released) == 1;
    std::printf("one acquired, one refused, one released: %d\n", seen);
    return seen ? 0 : 1;
}
