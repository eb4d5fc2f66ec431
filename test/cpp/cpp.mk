# The tests of the C++ headers, and of asio's timer beside ours. The Makefile includes this file.

cxx      := $(or $(CXX),c++)
cpp_warn := -Wall -Wextra -Wshadow -Wpointer-arith -Wundef -Wold-style-cast -pedantic -Werror
# GCC warns of fences, which ThreadSanitizer does not know; they are asio's.
cpp_warn += $(if $(filter tsan,$(MODE)),-Wno-error -Wno-tsan)
cpp_build = $(cxx) $(1) $(opt_$(MODE)) -g $(cpp_warn) -Iinclude -I. -pthread -MMD -MP $(CXXFLAGS)

cpp_all  := $(patsubst test/cpp/%.cpp,%,$(wildcard test/cpp/*.cpp))
cpp_17   := wrapper objects errors
cpp_bare := objects errors
cpp_bins := $(cpp_17:%=$B/test/cpp/%.17) $(cpp_all:%=$B/test/cpp/%.20) $(cpp_bare:%=$B/test/cpp/%.noexcept)
wraps_coroutine := -Wl,--wrap=malloc,--wrap=calloc

# The same programs with the standalone asio and with Boost's, each if it is installed.
has_cxx_header = $(shell printf '$(hash)include <$(1)>\n' | \
	$(cxx) -std=c++17 -E -x c++ - >/dev/null 2>&1 && echo yes)
has_asio  := $(call has_cxx_header,asio.hpp)
has_boost := $(call has_cxx_header,boost/asio/recycling_allocator.hpp)
asio_all  := $(patsubst test/cpp/asio/%.cpp,%,$(wildcard test/cpp/asio/*.cpp))
# ThreadSanitizer cannot follow a thread that a forked child starts.
asio_all  := $(filter-out $(if $(filter tsan,$(MODE)),fork),$(asio_all))
# With Boost `make test` has two of them, for the sake of time.
boost_all := $(filter $(if $(filter release,$(MODE)),interface fork,%),$(asio_all))
asio_bins := $(foreach timer,ours theirs,$(if $(has_asio),$(asio_all:%=$B/test/cpp/asio/%.$(timer))) \
	$(if $(has_boost),$(boost_all:%=$B/test/cpp/boost/%.$(timer))))

$B/test/cpp/%.17: test/cpp/%.cpp $(archives) $B/flags
	@mkdir -p $(@D)
	$(call say,c++)$(call cpp_build,-std=c++17) -o $@ $< $(archives)

# GCC 12 thinks that std::stop_source reads itself.
$B/test/cpp/%.20: test/cpp/%.cpp $(archives) $B/flags
	@mkdir -p $(@D)
	$(call say,c++)$(call cpp_build,-std=c++20) -Wno-maybe-uninitialized $(wraps_$*) -o $@ $< $(archives)

$B/test/cpp/%.noexcept: test/cpp/%.cpp $(archives) $B/flags
	@mkdir -p $(@D)
	$(call say,c++)$(call cpp_build,-std=c++17 -fno-exceptions) -o $@ $< $(archives)

# asio's own headers have an uninitialized value at -O1.
asio_build = $(call cpp_build,-std=c++20) -Wno-maybe-uninitialized \
	$(if $(filter boost,$(notdir $(@D))),-DTICKWHEEL_BOOST_ASIO)
$(filter %.ours,$(asio_bins)): %.ours: test/cpp/asio/$$(notdir $$*).cpp $(archives) $B/flags
	@mkdir -p $(@D)
	$(call say,c++)$(asio_build) -o $@ $< $(archives)

$(filter %.theirs,$(asio_bins)): %.theirs: test/cpp/asio/$$(notdir $$*).cpp $B/flags
	@mkdir -p $(@D)
	$(call say,c++)$(asio_build) -DWITH_STEADY_TIMER -o $@ $<

$B/bench/cpp/asio_timer: bench/cpp/asio_timer.cpp $(archives) $B/flags
	@mkdir -p $(@D)
	$(call say,c++)$(call cpp_build,-std=c++17) -o $@ $< $(archives)

# Examples in C++; those named asio_* are built if asio is installed.
example_cpp := $(filter-out $(if $(has_asio),,examples/asio_%),$(wildcard examples/*.cpp))
example_bins += $(example_cpp:examples/%.cpp=$B/bin/%)
$(example_cpp:examples/%.cpp=$B/bin/%): $B/bin/%: examples/%.cpp $(archives) $B/flags
	@mkdir -p $(@D)
	$(call say,c++)$(call cpp_build,-std=c++20) -o $@ $< $(archives)

.PHONY: test-cpp check-cpp bench-asio

# A part of `make test`.
test-cpp: deps-build+test
	$(again) $(cpp_bins) $(asio_bins)
	$(Q)test/cpp/run.sh $B

##@ C++

check-cpp: deps-build+test+clang ## C++ tests under the sanitizers; headers with gcc and clang
	$(Q)test/lint/headers.sh cpp
	$(again) test-cpp MODE=asan
	$(again) test-cpp MODE=tsan

bench-asio: deps-build+test ## arm and cancel beside 10,000 idle timers: asio::steady_timer and ours
	$(if $(has_asio),,@echo "bench-asio: needs asio (libasio-dev)"; exit 1)
	$(again) $B/bench/cpp/asio_timer
	$(Q)$B/bench/cpp/asio_timer
