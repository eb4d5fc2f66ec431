# The unit tests: with Criterion, and without it (for sanitizers, valgrind and the emulator).

test_o  := $(patsubst %.c,$B/%.o,$(shell find test/unit -name '*.c' | LC_ALL=C sort) $(wildcard test/support/*.c))

wrapped := malloc calloc aligned_alloc free mmap munmap pthread_create syscall \
	   epoll_create1 timerfd_create eventfd epoll_ctl epoll_wait sched_yield nanosleep read
$B/test/unit/run: $(test_o) $(archives)
	$(call say,link)$(CC) $(links) $(addprefix -Wl$(comma)--wrap=,$(wrapped)) $(CFLAGS) -o $@ $^ \
		-lcriterion -lm

plain_c  = $(shell find test/unit -name '*.c' | LC_ALL=C sort) $(wildcard test/support/*.c test/plain/*.c)
plain_o  = $(plain_c:%.c=$B/plain/%.o)

$B/plain/%.o: %.c $B/flags
	@mkdir -p $(@D)
	$(call say,cc)$(CC) -Itest/plain $(common) $(flags_$*) $(test_warn) $(CFLAGS) -c -o $@ $<

.SECONDEXPANSION:
$B/plain/run: $$(plain_o) $$(archives)
	$(call say,link)$(CC) $(links) $(addprefix -Wl$(comma)--wrap=,$(wrapped) $(if $(filter cover,$(MODE)),_exit)) \
		$(CFLAGS) -o $@ $^ -lm

.PHONY: check-compilers check-asan check-tsan check-tsan-units check-memcheck check-memcheck-debug
.PHONY: coverage faults

##@ Unit tests under checkers

check-compilers: deps-build+clang ## library, tests and headers build with gcc and clang, without a warning
	$(again) all build/gcc/plain/run MODE=gcc CC=gcc CXX=g++
	$(Q)CC=gcc CXX=g++ test/lint/headers.sh
	$(again) all build/clang/plain/run MODE=clang CC=clang CXX=clang++ CFLAGS="-Werror $(CFLAGS)"
	$(Q)CC=clang CXX=clang++ test/lint/headers.sh

check-asan: deps-build ## unit tests and short stress under the address, undefined and leak sanitizers
	$(again) build/asan/plain/run build/asan/bin/rpc_client MODE=asan
	$(Q)build/asan/bin/rpc_client 20000
	$(Q)build/asan/plain/run --jobs 2 --patience 5 --without test/plain/not_asan
	$(again) stress MODE=asan SECONDS=$(SHORT) AT_ONCE=2

by_tsan = TSAN_OPTIONS="suppressions=$(CURDIR)/test/tsan.supp halt_on_error=1 $$TSAN_OPTIONS"
run_by_tsan = $(by_tsan) build/tsan/plain/run --jobs 2 --patience 5 --without test/plain/not_tsan

check-tsan: deps-build ## unit tests and short stress under ThreadSanitizer
	$(again) build/tsan/plain/run build/tsan/bin/rpc_client MODE=tsan
	$(Q)$(by_tsan) build/tsan/bin/rpc_client 2000
	$(Q)$(run_by_tsan) --without test/plain/not_tsan_in_short
	$(again) tsan SECONDS=$(SHORT) AT_ONCE=2

check-tsan-units: deps-build ## all unit tests under ThreadSanitizer; check-tsan leaves out slow ones
	$(again) build/tsan/plain/run MODE=tsan
	$(Q)$(run_by_tsan)

# Valgrind finds reads of uninitialized memory, which check-asan cannot. All suites would take far more than a
# quarter of an hour, so these are the suites in which each layer makes, reuses and frees memory.
memcheck_suites := mpsc_lane timer_slots base_handles base_layers scheduler_bounds \
	timer_cancel timer_release timer_handles timer_reset close close_groups group_end service_stats_sizes \
	action action_batch action_immediate context limiter semaphore scheduler \
	scheduler_host limiter_close strand runs_work
under_memcheck = printf '%s\n' $(memcheck_suites) | xargs -P 2 -I{} \
	valgrind -q --error-exitcode=9 --leak-check=no --fair-sched=try \
	$(1) --patience 40 --without test/plain/not_memcheck --filter '{}/*'

# Uses the build of check-compilers, which is the release build. check-memcheck-debug uses the debug build.
check-memcheck: deps-build+memcheck ## some suites of the unit tests under valgrind
	$(again) build/gcc/plain/run MODE=gcc CC=gcc CXX=g++
	$(Q)$(call under_memcheck,build/gcc/plain/run)

check-memcheck-debug: deps-build+memcheck ## the same with MODE=debug
	$(again) build/debug/plain/run MODE=debug
	$(Q)$(call under_memcheck,build/debug/plain/run)

coverage: deps-build+coverage ## lines and branches that tests run; report in build/cover/report
	$(Q)find build/cover -name '*.gcda' -delete 2>/dev/null || true
	$(again) build/cover/plain/run MODE=cover
	$(Q)build/cover/plain/run --jobs 2 --patience 10 --without test/plain/not_asan
	$(again) stress MODE=cover SECONDS=$(SHORT) AT_ONCE=2
	$(Q)test/plain/coverage.sh build/cover

faults: deps-build ## refuses each request to the system, one after the other, and lists the outcomes
	$(again) build/release/plain/run
	$(Q)FAULTS_LIST=1 build/release/plain/run --filter 'faults_service/*'
