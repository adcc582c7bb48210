# make test-vllm   the tests that run vLLM's CPU engine on real weights, in an environment of their own
#
# vLLM pins torch and transformers, so it does not share .venv. `make test` includes it.

VLLM_ENV ?= build/vllm-cpu

.PHONY: test-vllm
test: test-vllm

VLLM_TESTS := $(VLLM_ENV)/bin/python -m pytest -c tests/vllm_engine/pytest.ini --rootdir=. tests/vllm_engine

test-vllm: $(VLLM_ENV)/.ready
	TRITON_INTERPRET=1 $(VLLM_TESTS)
	VLLM_NO_USAGE_STATS=1 HF_HUB_OFFLINE=1 VLLM_CPU_OMP_THREADS_BIND=nobind VLLM_LOGGING_LEVEL=ERROR $(VLLM_TESTS)

# torchvision, torchaudio and torchcodec come along, but their builds do not load beside a CPU torch.
$(VLLM_ENV)/.ready: packaging/vllm-requirements.txt | system-run
	$(PYTHON) -m venv $(VLLM_ENV)
	$(VLLM_ENV)/bin/python -m pip install --quiet --requirement packaging/vllm-requirements.txt
	$(VLLM_ENV)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	@touch $@
