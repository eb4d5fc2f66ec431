# The models of the protocols.

.PHONY: models models-mutants

##@ Models

models: deps-models ## checks the protocols' models with spin; a minute
	$(Q)test/model/run.sh build/models

models-mutants: deps-models ## the same models, each with one rule removed: each must fail
	$(Q)test/model/run.sh --mutants build/models
