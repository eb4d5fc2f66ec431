# The checks; the Makefile includes this file. docs/trust.md says what each command is good for.

SHORT ?= 3

# ------------------------------------------------------------------ the unit tests without Criterion (test/plain)

plain_c  = $(shell find test/unit -name '*.c' | LC_ALL=C sort) $(wildcard test/support/*.c test/plain/*.c)
plain_o  = $(plain_c:%.c=$B/plain/%.o)

$B/plain/%.o: %.c $B/flags
	@mkdir -p $(@D)
	$(call say,cc)$(CC) -Itest/plain $(common) $(flags_$*) $(test_warn) $(CFLAGS) -c -o $@ $<

.SECONDEXPANSION:
$B/plain/run: $$(plain_o) $$(lib)
	$(call say,link)$(CC) $(links) $(addprefix -Wl$(comma)--wrap=,$(wrapped) $(if $(filter cover,$(MODE)),_exit)) \
		$(CFLAGS) -o $@ $^ $(ck_libs) -lm

# The rows of bad calls, for test/contract/answers.sh.
$B/plain/misuses: $(patsubst %.c,$B/plain/%.o,$(wildcard test/unit/misuse/*.c) test/support/expect.c test/plain/run.c) \
		$(lib)
	$(call say,link)$(CC) $(links) $(CFLAGS) -o $@ $^ $(ck_libs) -lm

# ------------------------------------------------------------------ check

.PHONY: check check-parts check-cheap check-words check-misuse check-functions check-pairs check-answers \
	check-static check-compilers check-hardened check-memcheck
.PHONY: check-tsan check-asan abi abi-accept

check-cheap: check-includes check-format check-pairs check-words ## these, and static analysis
check-cheap: check-misuse check-functions check-static check-hardened abi

# The parts of `make check` run side by side, as many as make has jobs, each in a make of its own (test/part.sh).
# They start in this order: long ones first, short ones last. Parts that build in the same folder run one after
# the other, as the lines below say. `make -j1 check` runs all parts one after the other.
parts := check-asan check-static check-includes check-hardened abi test check-compilers models check-tsan \
	check-memcheck check-sandbox check-install check-musl check-man check-clocks check-format check-pairs \
	check-words check-misuse check-functions check-cache check-durable check-cpp

check_deps := deps-build+test+install+man+musl+models+check+static+abi+clang+memcheck+faults+cache+durable

##@ All checks

check: $(check_deps) ## all checks in a short form, side by side; build/check has the output of each
	$(Q)rm -rf build/check
	$(again) check-parts
	@echo "check: ok"

check-parts: $(parts:%=part-%)

part-%: FORCE
	+$(Q)test/part.sh $* $(MAKE) --no-print-directory NO_INSTALL=1 $*

# In build/release:
part-check-hardened: part-check-includes
part-abi: part-check-hardened
part-test: part-abi
part-check-install: part-test
part-check-man: part-check-install
part-check-clocks: part-check-man
part-check-cache: part-check-clocks
part-check-durable: part-check-cache
# In build/asan and build/tsan:
part-check-cpp: part-check-asan part-check-tsan
# In build/gcc and build/clang:
part-check-memcheck part-check-sandbox: part-check-compilers

##@ Parts of `make check`

check-pairs: ## each pair of a pairing table is cited at its sites, and each cited pair is in a table
	$(Q)test/lint/pairs.sh

check-words: ## columns, banned patterns, length of sentences, reading ease; test/lint/words.sh --figures shows numbers
	$(Q)test/lint/words.sh

check-misuse: ## each refusal of bad input has a text for the misuse hook, and a test of the text
	$(Q)test/lint/misuse.sh

check-functions: ## at most 144 public functions, each of them used in an example or in the guide
	$(Q)test/lint/functions.sh

check-answers: deps-build ## each list of errors in a header is what calls really answer (test/contract)
	$(again) $B/test/contract/answers $B/plain/misuses
	$(Q)test/contract/comments.sh
	$(Q)test/contract/answers.sh $B/test/contract/answers $B/plain/misuses

check-static: deps-static ## clang-tidy and cppcheck; test/lint/static.sh has the exceptions and their reasons
	$(Q)test/lint/static.sh

check-hardened: deps-build+abi ## the shared library is hardened and reads no environment; the static one is lean
	$(again) $B/libtickwheel.so $(lib)
	$(Q)test/package/hardened.sh $B/libtickwheel.so $(lib)
	$(Q)CC="$(CC)" test/package/lean.sh $(lib) $(ck_libs)

abi: deps-build+abi ## exported symbols and public structs equal test/package/abi.golden
	$(again) $B/libtickwheel.so
	$(Q)CC="$(CC)" test/package/abi.sh $B/libtickwheel.so

abi-accept: deps-build+abi ## writes the present symbols and structs to test/package/abi.golden
	$(again) $B/libtickwheel.so
	$(Q)CC="$(CC)" test/package/abi.sh --accept $B/libtickwheel.so

check-compilers: deps-build+clang ## library, tests and headers build with gcc and clang, without a warning
	$(again) all build/gcc/plain/run MODE=gcc CC=gcc CXX=g++
	$(Q)CC=gcc CXX=g++ test/lint/headers.sh
	$(again) all build/clang/plain/run MODE=clang CC=clang CXX=clang++ CFLAGS="-Werror $(CFLAGS)"
	$(Q)CC=clang CXX=clang++ test/lint/headers.sh

sandboxed := loop ledger close groups
# Runs clang's build of the unit tests, so that one run checks both: another compiler, and the gate that takes
# membarrier's place.
check-sandbox: deps-build+clang ## unit tests built by clang, and short stress, on a system without membarrier
	$(again) build/clang/plain/run build/clang/test/system/sandbox $(sandboxed:%=build/clang/test/stress/%) \
		MODE=clang CC=clang CXX=clang++ CFLAGS="-Werror $(CFLAGS)"
	$(Q)build/clang/test/system/sandbox build/clang/plain/run --jobs 2 --patience 5 \
		--without test/plain/not_sandboxed
	$(Q)build/clang/test/system/sandbox test/stress/run.sh $(SHORT) 2 $(sandboxed:%=build/clang/test/stress/%)

$B/test/system/sandbox: $B/test/system/sandbox.o
	$(call say,link)$(CC) $(links) $(CFLAGS) -o $@ $^

check-asan: deps-build ## unit tests and short stress under the address, undefined and leak sanitizers
	$(again) build/asan/plain/run MODE=asan
	$(Q)build/asan/plain/run --jobs 2 --patience 5 --without test/plain/not_asan
	$(again) stress MODE=asan SECONDS=$(SHORT) AT_ONCE=2

run_by_tsan = TSAN_OPTIONS="suppressions=$(CURDIR)/test/tsan.supp halt_on_error=1 $$TSAN_OPTIONS" \
	build/tsan/plain/run --jobs 2 --patience 5 --without test/plain/not_tsan

check-tsan: deps-build ## unit tests and short stress under ThreadSanitizer
	$(again) build/tsan/plain/run MODE=tsan
	$(Q)$(run_by_tsan) --without test/plain/not_tsan_in_short
	$(again) tsan SECONDS=$(SHORT) AT_ONCE=2

check-tsan-units: deps-build ## all unit tests under ThreadSanitizer; check-tsan leaves out slow ones
	$(again) build/tsan/plain/run MODE=tsan
	$(Q)$(run_by_tsan)

# Valgrind finds reads of uninitialized memory, which check-asan cannot. All suites would take far more than a
# quarter of an hour, so these are the suites in which each layer makes, reuses and frees memory.
memcheck_suites := mpsc_lane mpsc_lane_packing timer_slots base_handles base_heap timer_cancel timer_release \
	timer_handles timer_reset close close_groups group_end service_sizes \
	timer_bad_input action action_batch action_immediate context limiter semaphore scheduler_ends \
	scheduler_refusals limiter_close strand_create strand_close runs_work
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

# ------------------------------------------------------------------ in depth

.PHONY: check-full check-memcheck-debug check-tsan-units check-planted check-clocks check-sandbox
.PHONY: fuzz soak coverage faults check-arm64 check-analyzer

# Seconds for each long run of check-full.
LONG ?= 60

##@ Checks in depth

full := check check-memcheck-debug check-tsan-units models-mutants check-planted check-analyzer check-arm64

check-full: $(full) ## make check, and all checks of this list, each for a minute; more than an hour
	$(again) stress SECONDS=$(LONG)
	$(again) tsan SECONDS=$(LONG)
	$(again) fuzz SECONDS=$(LONG)
	$(again) soak SECONDS=$(LONG)
	@echo "check-full: ok"

fuzz_bins := $(patsubst test/fuzz/%.c,build/fuzz/test/fuzz/%,$(wildcard test/fuzz/fuzz_*.c))
fuzz_support := $(patsubst %.c,build/fuzz/plain/%.o,$(filter-out test/support/faults.c test/support/inherited.c, \
	$(wildcard test/support/*.c)))

build/fuzz/test/fuzz/%: build/fuzz/plain/test/fuzz/%.o $(fuzz_support) $$(lib)
	@mkdir -p $(@D)
	$(call say,link)$(CC) -fsanitize=fuzzer,address,undefined $(CFLAGS) -o $@ $^ $(ck_libs) -lm -pthread

fuzz: deps-build+fuzz ## libFuzzer on wheel, service and structs, SECONDS=n each; finds go to build/fuzz/found
	$(again) $(fuzz_bins) MODE=fuzz CC=clang
	$(Q)test/fuzz/run.sh $(SECONDS) $(fuzz_bins)

check-planted: deps-build+fuzz ## plants bugs in a copy of the sources; fuzz, soak, stress and unit tests must find each
	$(Q)test/planted/run.sh

soak: deps-build ## a busy service for SECONDS=n: memory, lateness, descriptors and threads stay flat
	$(again) $B/test/stress/soak
	$(Q)$B/test/stress/soak $(SECONDS)

check-clocks: deps-build+faults ## odd real clocks: time namespaces, leaps, steps of the time of day
	$(again) $B/test/system/clocks
	$(Q)test/system/clocks.sh $B/test/system/clocks

$B/test/system/clocks: $$@.o $$(lib)
	$(call say,link)$(CC) $(links) $(CFLAGS) -o $@ $^ $(ck_libs) -lm

coverage: deps-build+coverage ## lines and branches that tests run; report in build/cover/report
	$(Q)find build/cover -name '*.gcda' -delete 2>/dev/null || true
	$(again) build/cover/plain/run MODE=cover
	$(Q)build/cover/plain/run --jobs 2 --patience 10 --without test/plain/not_asan
	$(again) stress MODE=cover SECONDS=$(SHORT) AT_ONCE=2
	$(Q)test/plain/coverage.sh build/cover

faults: deps-build ## refuses each request to the system, one after the other, and lists the outcomes
	$(again) build/release/plain/run
	$(Q)FAULTS_LIST=1 build/release/plain/run --filter 'faults/*'
	$(Q)build/release/plain/run --filter 'real_faults/*'

check-analyzer: deps-build ## gcc -fanalyzer over the library
	$(Q)test/lint/analyzer.sh

check-arm64: deps-build+arm64 ## library and tests for arm64 under qemu, which does not show weak ordering
	$(Q)test/system/arm64.sh
