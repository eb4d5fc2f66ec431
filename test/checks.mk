# What proves the library: included by the Makefile. docs/trust.md says what each command is good for.

SHORT ?= 3

# ------------------------------------------------------------------ the unit tests without Criterion (test/plain)

# What reads JSON back is left out of the cross build, which has no jansson.
plain_lacks := $(if $(filter arm64,$(MODE)),test/unit/scheduler_log.c)
plain_o = $(patsubst %.c,$B/plain/%.o,$(filter-out $(plain_lacks),$(wildcard test/unit/*.c test/support/*.c test/plain/*.c)))
plain_libs := $(if $(plain_lacks),,-ljansson)

$B/plain/%.o: %.c $B/flags
	@mkdir -p $(@D)
	$(call say,cc)$(CC) -Itest/plain $(common) $(flags_$*) $(CFLAGS) -c -o $@ $<

.SECONDEXPANSION:
$B/plain/run: $$(plain_o) $$(lib)
	$(call say,link)$(CC) $(links) $(addprefix -Wl$(comma)--wrap=,$(wrapped) $(if $(filter cover,$(MODE)),_exit)) $(CFLAGS) -o $@ $^ \
		$(plain_libs) $(ck_libs) -lm

# ------------------------------------------------------------------ check

.PHONY: check check-parts check-cheap check-full check-includes check-pairs check-static check-compilers check-hardened check-memcheck \
	check-tsan check-asan abi abi-accept

check-cheap: check-includes check-format check-pairs check-static check-hardened abi ## include rule, format, pairs, static analysis, hardening, ABI

# The parts of `make check`: as many at a time as make has jobs, each in a make of its own, told of when it ends (test/part.sh). They begin in this
# order: long ones first, tests beside what only computes, short ones last. Two that build in the same folder run one after the other, as the
# lines below say. `make -j1 check` runs all in turn.
parts := check-asan check-static check-includes check-hardened abi test check-compilers models check-tsan check-memcheck check-sandbox \
	check-install check-musl check-man check-clocks check-format check-pairs

check: deps-build+test+install+man+musl+models+check+static+abi+clang+memcheck+faults ## all that checks, in short, its parts side by side; what each said is in build/check
	$(Q)rm -rf build/check
	$(again) check-parts
	@echo "check: ok"

check-parts: $(parts:%=part-%)

part-%: FORCE
	+$(Q)test/part.sh $* $(MAKE) --no-print-directory $*

# In build/release:
part-check-hardened: part-check-includes
part-abi: part-check-hardened
part-test: part-abi
part-check-install: part-test
part-check-man: part-check-install
part-check-clocks: part-check-man
# In build/gcc and build/clang:
part-check-memcheck part-check-sandbox: part-check-compilers

check-pairs: ## the pairing tables: what is cited is there, what is there is cited
	$(Q)test/pairs.sh

check-static: deps-static ## clang-tidy and cppcheck; test/static.sh gives the exceptions and their reasons
	$(Q)test/static.sh

check-hardened: deps-build+abi ## what the shared library was built with; that it reads no environment variable
	$(again) $B/libtickwheel.so $(lib)
	$(Q)test/hardened.sh $B/libtickwheel.so $(lib)

abi: deps-build+abi ## exported symbols and public structs are those of test/abi.golden
	$(again) $B/libtickwheel.so
	$(Q)CC="$(CC)" test/abi.sh $B/libtickwheel.so

abi-accept: deps-build+abi ## takes what they are now for golden
	$(again) $B/libtickwheel.so
	$(Q)CC="$(CC)" test/abi.sh --accept $B/libtickwheel.so

check-compilers: deps-build+clang ## library, tests and headers with gcc and with clang, warnings are errors (clang's unit tests: check-sandbox)
	$(again) all build/gcc/plain/run MODE=gcc CC=gcc CXX=g++
	$(Q)CC=gcc CXX=g++ test/headers.sh
	$(again) all build/clang/plain/run MODE=clang CC=clang CXX=clang++ CFLAGS="-Werror $(CFLAGS)"
	$(Q)CC=clang CXX=clang++ test/headers.sh

sandboxed := loop ledger close groups
# The unit tests of the clang build, so that one run tells of both: another compiler, and the gate that takes membarrier's place.
check-sandbox: deps-build+clang ## unit tests built by clang, and short stress, where the system refuses membarrier
	$(again) build/clang/plain/run build/clang/test/sandbox $(sandboxed:%=build/clang/test/stress_%) MODE=clang CC=clang CXX=clang++ CFLAGS="-Werror $(CFLAGS)"
	$(Q)build/clang/test/sandbox build/clang/plain/run --jobs 2 --without test/plain/not_sandboxed
	$(Q)build/clang/test/sandbox $(CURDIR)/test/stress.sh $(SHORT) 2 $(sandboxed:%=build/clang/test/stress_%)


$B/test/sandbox: $B/test/sandbox.o
	$(call say,link)$(CC) $(links) $(CFLAGS) -o $@ $^

check-asan: deps-build ## unit tests and short stress under AddressSanitizer, UndefinedBehaviorSanitizer and LeakSanitizer
	$(again) build/asan/plain/run MODE=asan
	$(Q)build/asan/plain/run --jobs 2 --patience 5 --without test/plain/not_asan
	$(again) stress MODE=asan SECONDS=$(SHORT) AT_ONCE=2

run_by_tsan = TSAN_OPTIONS="suppressions=$(CURDIR)/test/tsan.supp halt_on_error=1 $$TSAN_OPTIONS" \
	build/tsan/plain/run --jobs 2 --patience 5 --without test/plain/not_tsan

check-tsan: deps-build ## unit tests and short stress under ThreadSanitizer
	$(again) build/tsan/plain/run MODE=tsan
	$(Q)$(run_by_tsan) --without test/plain/not_tsan_in_short
	$(again) tsan SECONDS=$(SHORT) AT_ONCE=2

check-tsan-units: deps-build ## unit tests under ThreadSanitizer, with the slow ones of a single thread that check-tsan leaves out
	$(again) build/tsan/plain/run MODE=tsan
	$(Q)$(run_by_tsan)

# All suites under valgrind take far more than a quarter of an hour. What it adds to check-asan is values that were never written, so these are
# the suites that walk each layer's ways of making, reusing and giving back memory; long ones (models, simulation, storms) are not.
memcheck_suites := lane slots nodes heap cancel release handles reset batch_orphans close close_groups group_end sizes bad_input \
	action action_batch immediate context limiter semaphore scheduler_ends strand_create strand_dispose work
under_memcheck = printf '%s\n' $(memcheck_suites) | xargs -P 2 -I{} valgrind -q --error-exitcode=9 --leak-check=no --fair-sched=try \
	$(1) --patience 40 --without test/plain/not_memcheck --filter '{}/*'

# The build that check-compilers makes: what is delivered. With the checks of TW_DEBUG, which asan and tsan builds have too: check-memcheck-debug.
check-memcheck: deps-build+memcheck ## unit tests of some suites under valgrind: bad accesses, uninitialised values (leaks: check-asan)
	$(again) build/gcc/plain/run MODE=gcc CC=gcc CXX=g++
	$(Q)$(call under_memcheck,build/gcc/plain/run)

check-memcheck-debug: deps-build+memcheck ## the same with MODE=debug
	$(again) build/debug/plain/run MODE=debug
	$(Q)$(call under_memcheck,build/debug/plain/run)


# ------------------------------------------------------------------ in depth


.PHONY: check-full check-memcheck-debug check-tsan-units check-planted check-clocks check-sandbox fuzz soak coverage faults check-arm64 check-analyzer

# Seconds for these; `make stress` has SECONDS=20 by default.
LONG ?= 60

check-full: check check-memcheck-debug check-tsan-units models-mutants check-planted check-analyzer check-arm64 ## make check, debug build under valgrind, slower tests under ThreadSanitizer, the models' mutants, planted bugs, gcc -fanalyzer, arm64, longer stress, fuzz, soak; an hour and more
	$(again) stress SECONDS=$(LONG)
	$(again) tsan SECONDS=$(LONG)
	$(again) fuzz SECONDS=$(LONG)
	$(again) soak SECONDS=$(LONG)
	@echo "check-full: ok"

fuzz_bins := $(patsubst test/fuzz/%.c,build/fuzz/test/fuzz/%,$(wildcard test/fuzz/fuzz_*.c))
fuzz_support := $(patsubst %.c,build/fuzz/plain/%.o,$(filter-out test/support/faults.c test/support/inherited.c,$(wildcard test/support/*.c)))

build/fuzz/test/fuzz/%: build/fuzz/plain/test/fuzz/%.o $(fuzz_support) $$(lib)
	@mkdir -p $(@D)
	$(call say,link)$(CC) -fsanitize=fuzzer,address,undefined $(CFLAGS) -o $@ $^ $(ck_libs) -lm -pthread

fuzz: deps-build+fuzz ## libFuzzer on wheel, service and structs, SECONDS=n each; what it finds is left in build/fuzz/found
	$(again) $(fuzz_bins) MODE=fuzz CC=clang
	$(Q)test/fuzz.sh $(SECONDS) $(fuzz_bins)

check-planted: deps-build+fuzz ## bugs put into a copy of the sources: the fuzz targets and the soak must find each
	$(Q)test/planted.sh

soak: deps-build ## a service at work for SECONDS=n: memory, lateness, descriptors and threads must be flat; one line of verdict
	$(again) $B/test/soak
	$(Q)$B/test/soak $(SECONDS)

check-clocks: deps-build+faults ## the real clocks where they are odd: time namespaces, leaps, a time of day that steps (libfaketime)
	$(again) $B/test/clocks
	$(Q)test/clocks.sh $B/test/clocks

$B/test/soak $B/test/clocks: $$@.o $$(lib)
	$(call say,link)$(CC) $(links) $(CFLAGS) -o $@ $^ $(ck_libs) -lm

coverage: deps-build+coverage ## lines and branches that the unit tests and a short stress run; report in build/cover/report
	$(Q)find build/cover -name '*.gcda' -delete 2>/dev/null || true
	$(again) build/cover/plain/run MODE=cover
	$(Q)build/cover/plain/run --jobs 2 --patience 10 --without test/plain/not_asan
	$(again) stress MODE=cover SECONDS=$(SHORT) AT_ONCE=2
	$(Q)test/coverage.sh build/cover

faults: deps-build ## the list of requests that were refused in turn, and what came of each
	$(again) build/release/plain/run
	$(Q)FAULTS_LIST=1 build/release/plain/run --filter 'faults/*'
	$(Q)build/release/plain/run --filter 'real_faults/*'

check-analyzer: deps-build ## gcc -fanalyzer over the library
	$(Q)test/analyzer.sh

check-arm64: deps-build+arm64 ## library and tests for arm64, run by qemu (which does not show weak ordering)
	$(Q)test/arm64.sh
