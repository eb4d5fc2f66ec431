# Rules of the sources and texts, and static analysis.

.PHONY: check-cheap check-includes check-format format check-pairs check-words check-misuse check-functions
.PHONY: check-static check-analyzer check-trust trust

##@ Rules of the sources

check-cheap: check-includes check-format check-pairs check-words ## these, and static analysis
check-cheap: check-misuse check-functions check-trust check-static check-hardened abi amalgamation

check-includes: deps-build ## includes and calls point down the list of folders; sizes of files, folders and structs
	$(again) $(lib_o)
	$(Q)test/lint/includes.sh $B
	$(Q)test/lint/rooms.sh $B

check-format: deps-check ## the code has the form that clang-format gives it
	$(Q)clang-format --dry-run -Werror $$(git ls-files '*.c' '*.h' '*.cpp' '*.hpp') && echo "format: ok"

format: deps-check ## formats the code
	$(Q)clang-format -i $$(git ls-files '*.c' '*.h' '*.cpp' '*.hpp')

check-pairs: ## each pair of a pairing table is cited at its sites, and each cited pair is in a table
	$(Q)test/lint/pairs.sh

check-words: ## columns, banned patterns, length of sentences, reading ease; test/lint/words.sh --figures shows numbers
	$(Q)test/lint/words.sh

check-misuse: ## each refusal of bad input has a text for the misuse hook, and a test of the text
	$(Q)test/lint/misuse.sh

check-functions: ## no more public functions than there are, each of them used in an example or in the guide
	$(Q)test/lint/functions.sh

check-trust: ## each guarantee has a test, and each model, stress program and folder of unit tests a promise
	$(Q)test/lint/trust.sh
	$(Q)test/planted/run.sh --marks
	$(Q)test/planted/run.sh --list test/peers/planted --marks

trust: deps-build ## build/trust.md: guarantees, models and documented errors, each with what holds it
	$(again) $B/test/contract/answers $B/plain/misuses
	$(Q)test/contract/answers.sh $B/test/contract/answers $B/plain/misuses build/errors
	$(Q)test/lint/trust.sh --page build/errors >build/trust.md && rm build/errors && echo "trust: build/trust.md"

check-static: deps-static ## clang-tidy and cppcheck; test/lint/static.sh has the exceptions and their reasons
	$(Q)test/lint/static.sh

check-analyzer: deps-build ## gcc -fanalyzer over the library
	$(Q)test/lint/analyzer.sh
