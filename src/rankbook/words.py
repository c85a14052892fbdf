"""The words in which suites say what they need: names of decorators, marks, flags and calls, each with its meaning.

To teach rankbook a name, add a row to `NAMES`; all of it is plain data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from rankbook.requirements import Needs, Rule


def _needs(*pairs: tuple[str, str], unless: Needs = (), otherwise: str = "skipped") -> Rule:
    return Rule(pairs, unless, otherwise=otherwise)


def _gpus(value: str) -> Rule:
    return Rule((("gpus", value),))


def _package(name: str) -> Rule:
    return Rule((("package", name),))


def _library(name: str) -> Rule:
    return Rule((("library", name),))


def _platform(name: str) -> Rule:
    """Name a platform, or a kind of build or run, that a condition asks for or rules out."""
    return Rule((("platform", name),))


def _not_on(name: str) -> Rule:
    return Rule((("platform", f"not {name}"),))


def _only_on(*devices: str) -> Rule:
    return Rule((("device", " or ".join(devices)),))


def _slow(variable: str) -> Rule:
    return Rule((("slow", f"{variable} == 1"),))


def _for(rule: Rule, *devices: str) -> Rule:
    """Say that a rule speaks only of the tests generated for some devices."""
    return Rule(rule.needs, rule.unless, rule.when, rule.keywords, rule.condition, devices, rule.otherwise)


def _packages(prefix: str, words: str, suffix: str = "") -> Iterable[tuple[str, Rule]]:
    """Give a row for each word: the name after the prefix, and the package where that is called otherwise."""
    for word in words.split():
        name, _, package = word.partition("=")
        yield prefix + name + suffix, _package(package or name)


def _mark(*needs: tuple[str, str]) -> Rule:
    return Rule(needs)


def _capabilities() -> Iterable[tuple[str, Rule]]:
    for version in ("5.3", "6.0", "7.0", "7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "10.3", "11.0", "12.0"):
        digits = version.replace(".", "")
        yield f"SM{digits}OrLater", Rule((("capability", f">= {version}"),))
        yield f"IS_SM{digits}", Rule((("capability", f"== {version}"),))


_GPU = ("gpus", "1")
_NCCL = ("backend", "nccl")
_TRITON = ("package", "triton")
_P2P: Needs = (("gpus", "2"), ("peer access", ""), ("capability", ">= 8.0"))
_GENERATED = ("cpu", "cuda", "meta")

_GPUS_ROWS: Mapping[str, Rule] = {
    "skip_if_lt_x_gpu": Rule((("gpus", "{0|x}"),), keywords=(("allow_cpu", (("gpus", "{0|x} or none"),)),)),
    "skip_if_lt_x_gpu_and_backend": _gpus("{0|x}"),
    "at_least_x_gpu": _gpus("{0|x}"),
    "requires_world_size": _gpus("{0|n}"),
    "deviceCountAtLeast": _for(_gpus("{0|num_required_devices}"), "cuda", "xpu"),
    "nccl_skip_if_lt_x_gpu": Rule((("gpus", "{1|x}"),), when=("{0|backend}", "nccl")),
    "require_n_gpus_for_nccl_backend": Rule((("gpus", "{0|n}"),), when=("{1|backend}", "nccl")),
    "skip_if_no_gpu": _gpus("1"),
    "skip_unless_torch_gpu": _gpus("4"),
    "with_comms_gpu": _gpus("1"),
    "requires_cuda": _gpus("1"),
    "requires_gpu": _gpus("1"),
    "requires_multigpu": _gpus("2"),
    "requires_multi_gpu": _gpus("2"),
    "requires_cuda_and_triton": _needs(_GPU, _TRITON),
    "requires_gpu_and_triton": _needs(_GPU, _TRITON),
    "requires_triton": _package("triton"),
    "onlyAccelerator": _only_on("cuda", "xpu", "mps"),
    "onlyOn": _needs(("device", "{0|device_type}")),
    "onlyCUDA": _only_on("cuda"),
    "onlyGPU": _only_on("cuda", "xpu"),
    "TEST_CUDA": _gpus("1"),
    "TEST_GPU": _gpus("1"),
    "TEST_ACCELERATOR": _gpus("1"),
    "HAS_ACCELERATOR": _gpus("1"),
    "HAS_GPU": _gpus("1"),
    "HAS_CUDA": _gpus("1"),
    "RUN_CUDA": _gpus("1"),
    "RUN_GPU": _gpus("1"),
    "RUN_CUDA_HALF": _needs(_GPU, ("capability", ">= 5.3")),
    "RUN_CUDA_MULTI_GPU": _gpus("2"),
    "HAS_MULTIGPU": _gpus("2"),
    "TEST_MULTIGPU": _gpus("2"),
    "TEST_MULTIACCELERATOR": _gpus("2"),
    "HAS_GPU_AND_TRITON": _needs(_GPU, _TRITON),
    "HAS_CUDA_AND_TRITON": _needs(_GPU, _TRITON),
    "HAS_XPU_AND_TRITON": _needs(("device", "xpu"), _TRITON),
    "torch.cuda.is_available": _gpus("1"),
    "torch.cuda._is_compiled": _library("CUDA"),
    "torch.accelerator.is_available": _gpus("1"),
    "torch.accelerator.current_accelerator": _gpus("1"),
    "get_accelerator.is_available": _gpus("1"),
    "num_gpus": _gpus("1"),
    "require_cuda": _gpus("1"),
    "require_gpu": _gpus("1"),
    "require_cuda_or_xpu": _gpus("1"),
    "require_cuda_or_hpu": _gpus("1"),
    "require_non_cpu": _gpus("1"),
    "require_cpu": _gpus("== 0"),
    "require_single_device": _gpus("== 1"),
    "require_single_gpu": _gpus("== 1"),
    "require_single_xpu": _needs(("device", "xpu")),
    "require_multi_device": _gpus("2"),
    "require_multi_gpu": _gpus("2"),
    "require_multi_gpu_or_xpu": _gpus("2"),
    "require_multi_accelerator": _gpus("2"),
    "require_multi_xpu": _needs(("device", "xpu")),
    "require_non_multi_gpu": _gpus("<= 1"),
    "require_torch_gpu": _gpus("1"),
    "require_torch_accelerator": _gpus("1"),
    "require_torch_gpu_or_accelerator": _gpus("1"),
    "require_torch_multi_gpu": _gpus("2"),
    "require_torch_multi_accelerator": _gpus("2"),
    "require_torch_multi_npu": _needs(("device", "npu")),
    "require_torch_multi_xpu": _needs(("device", "xpu")),
    "require_torch_non_multi_gpu": _gpus("<= 1"),
    "require_torch_non_multi_accelerator": _gpus("<= 1"),
    "require_torch_up_to_2_gpus": _gpus("<= 2"),
    "require_torch_up_to_2_accelerators": _gpus("<= 2"),
    "mark.gpu": _gpus("{0|n=1}"),
    "mark.gpus": _gpus("{0|n=1}"),
    "mark.cuda": _gpus("1"),
    "mark.multi_gpu": _gpus("{0|n=2}"),
    "mark.multigpu": _gpus("{0|n=2}"),
    "mark.multi_gpus": _gpus("{0|n=2}"),
    "mark.require_gpu": _gpus("1"),
    "mark.requires_gpu": _gpus("1"),
}
"""Number of GPUs."""

PER_RANK = frozenset({"mark.gpu", "mark.gpus", "mark.cuda", "mark.require_gpu", "mark.requires_gpu"})
"""Marks that, without a number, ask for one GPU for each rank."""

_RANKS: Mapping[str, Rule] = {
    "require_world_size": _needs(("world size", ">= {0|world_size}")),
    "require_exact_world_size": _needs(("world size", "{0|world_size}")),
    "skip_if_small_worldsize": _needs(("world size", ">= 8")),
    "skip_if_odd_worldsize": _needs(("world size", "even")),
    "mark.world_size": _needs(("world size", "{0|n}"), otherwise=""),
    "mark.nprocs": _needs(("world size", "{0|n}"), otherwise=""),
}
"""World size."""

_BACKENDS: Mapping[str, Rule] = {
    "requires_nccl": _needs(_NCCL),
    "requires_gloo": _needs(("backend", "gloo")),
    "requires_ucc": _needs(("backend", "ucc")),
    "requires_mpi": _needs(("backend", "mpi")),
    "requires_xccl": _needs(("backend", "xccl")),
    "requires_accelerator_dist_backend": _needs(("backend", "{0|backends=nccl or xccl or hccl}")),
    "require_backend_is_available": _needs(("environment", "BACKEND == {0|backends}")),
    "requires_backend": _needs(("backend", "{0|backend}")),
    "is_nccl_available": _needs(_NCCL),
    "is_gloo_available": _needs(("backend", "gloo")),
    "is_ucc_available": _needs(("backend", "ucc")),
    "is_mpi_available": _needs(("backend", "mpi")),
    "is_xccl_available": _needs(("backend", "xccl")),
    "torch.distributed.is_backend_available": _needs(("backend", "{0|backend}")),
    "NO_NCCL": _needs(("backend", "not nccl")),
    "NO_UCC": _needs(("backend", "not ucc")),
    "NO_GLOO": _needs(("backend", "not gloo")),
    "mark.nccl": _mark(_NCCL),
    "mark.gloo": _mark(("backend", "gloo")),
    "mark.mpi": _mark(("backend", "mpi")),
    "mark.ucc": _mark(("backend", "ucc")),
    "sharded_tensor.with_comms": _needs(("backend", "{2|backend=nccl}"), otherwise=""),
    "common_dtensor.with_comms": _needs(("backend", "{2|backend=}"), otherwise=""),
    "requires_nccl_version": _needs(("library", "NCCL >= {0|version}")),
    "requires_nccl_version_or": _needs(("library", "NCCL >= {0|version}")),
    "requires_nccl_shrink": _needs(("library", "NCCL >= 2.27")),
    "torch.distributed.is_available": _library("torch.distributed"),
    "_torch_dist_nn_available": _library("torch.distributed.nn"),
    "requires_distributed": _library("torch.distributed"),
    "rpc.is_available": _library("torch.distributed.rpc"),
}
"""Backends and what they are built with."""

_HARDWARE: Mapping[str, Rule] = {
    "requires_cuda_p2p_access": Rule(_P2P),
    "requires_multicast_support": _needs(_GPU, ("peer access", "by NVLink multicast")),
    "has_multicast_support": _needs(("peer access", "by NVLink multicast")),
    "torch.cuda.can_device_access_peer": _needs(("gpus", "2"), ("peer access", "")),
    "torch._C._cuda_canDeviceAccessPeer": _needs(("gpus", "2"), ("peer access", "")),
    "can_device_access_peer": _needs(("gpus", "2"), ("peer access", "")),
    "IS_BIG_GPU": _needs(("device", "big GPU")),
    "is_big_gpu": _needs(("device", "big GPU")),
    "IS_H100": _needs(("capability", "== 9.0")),
    "IS_A100": _needs(("capability", "== 8.0")),
    "_IS_SM8X": _needs(("capability", "8.x")),
    "IS_SM10X": _needs(("capability", "10.x")),
    "IS_SM12X": _needs(("capability", "12.x")),
    "IS_THOR": _needs(("capability", "11.x")),
    "TEST_CUDNN": _needs(_GPU, ("library", "cuDNN")),
    "TEST_CUDA_GRAPH": _gpus("1"),
    "TEST_CUDA_GRAPH_CONDITIONAL_NODES": _gpus("1"),
    "TEST_CUDA_CUDSS": _needs(_GPU, ("library", "cuDSS")),
    "TEST_CUSPARSE_GENERIC": _needs(_GPU, ("library", "cuSPARSE")),
    "TEST_HIPSPARSE_GENERIC": _needs(("platform", "ROCm"), ("library", "hipSPARSE")),
    "TEST_CUDAMALLOCASYNC": _needs(_GPU, ("environment", "cudaMallocAsync allocator")),
    "TEST_MAGMA": _library("MAGMA"),
    "PLATFORM_SUPPORTS_FLASH_ATTENTION": _needs(_GPU, ("library", "flash attention")),
    "PLATFORM_SUPPORTS_MEM_EFF_ATTENTION": _needs(_GPU, ("library", "memory-efficient attention")),
    "PLATFORM_SUPPORTS_FUSED_ATTENTION": _needs(_GPU, ("library", "fused attention")),
    "PLATFORM_SUPPORTS_FUSED_SDPA": _needs(_GPU, ("library", "fused attention")),
    "PLATFORM_SUPPORTS_CUDNN_ATTENTION": _needs(_GPU, ("library", "cuDNN attention")),
    "PLATFORM_SUPPORTS_CK_SDPA": _needs(("platform", "ROCm"), ("library", "CK attention")),
    "PLATFORM_SUPPORTS_FLASH_ATTENTION_XPU": _needs(("device", "xpu"), ("library", "flash attention")),
    "PLATFORM_SUPPORTS_BF16": _needs(("device", "GPU with bfloat16")),
    "PLATFORM_SUPPORTS_BF16_ATOMICS": _needs(("device", "GPU with bfloat16")),
    "PLATFORM_SUPPORTS_HALF_ATOMICS": _needs(("device", "GPU with float16")),
    "BFLOAT16_AVAILABLE": _needs(("device", "GPU with bfloat16")),
    "PLATFORM_SUPPORTS_FP8": _needs(("device", "GPU with float8")),
    "PLATFORM_SUPPORTS_FP8_GROUPED_GEMM": _needs(("device", "GPU with float8")),
    "PLATFORM_SUPPORTS_FP8_SPARSE": _needs(("device", "GPU with float8")),
    "PLATFORM_SUPPORTS_MX_GEMM": _needs(("device", "GPU with microscaling formats")),
    "PLATFORM_SUPPORTS_MXFP8_GROUPED_GEMM": _needs(("device", "GPU with microscaling formats")),
    "PLATFORM_SUPPORTS_GREEN_CONTEXT": _needs(("device", "GPU with green contexts")),
    "PLATFORM_SUPPORTS_WORKQUEUE_CONFIG": _needs(("device", "GPU with green contexts")),
    "PLATFORM_SUPPORTS_SYMM_MEM": _needs(_GPU, ("library", "symmetric memory")),
    "torch.cuda.is_bf16_supported": _needs(("device", "GPU with bfloat16")),
    "is_bf16_supported": _needs(("device", "GPU with bfloat16")),
    "is_fp16_supported": _needs(("device", "GPU with float16")),
    "bf16_required_version_check": _needs(("device", "GPU with bfloat16")),
    "require_bf16": _needs(("device", "GPU with bfloat16")),
    "require_torch_bf16_gpu": _needs(("device", "GPU with bfloat16")),
    "require_torch_bf16": _needs(("device", "GPU with bfloat16")),
    "require_torch_fp16": _needs(("device", "GPU with float16")),
    "require_torch_tf32": _needs(("capability", ">= 8.0")),
    **dict(_capabilities()),
    "largeTensorTest": _needs(("memory", "{0|size}")),
    "requires_gpu_with_enough_memory": _needs(_GPU, ("memory", "{0|min_mem_required} bytes")),
    "large_gpu_memory": _needs(("memory", "{0}")),
    "require_large_cpu_ram": _needs(("memory", "{1|memory=80} GB")),
    "require_torch_large_gpu": _needs(_GPU, ("memory", "{1|memory=20} GB")),
    "require_torch_large_accelerator": _needs(_GPU, ("memory", "{1|memory=20} GB")),
    "TEST_LARGE_TENSOR": _needs(("memory", "12 GB")),
}
"""Peer access, capability, what a GPU can do, memory."""

_DEVICES: Mapping[str, Rule] = {
    "onlyCPU": _only_on("cpu"),
    "onlyXPU": _only_on("xpu"),
    "onlyMPS": _only_on("mps"),
    "onlyHPU": _only_on("hpu"),
    "onlyPRIVATEUSE1": _only_on("privateuse1"),
    "onlyCUDAAndPRIVATEUSE1": _only_on("cuda", "privateuse1"),
    "onlyNativeDeviceTypes": _only_on(*_GENERATED, "xpu", "mps", "hpu"),
    "onlyNativeDeviceTypesAnd": _only_on(*_GENERATED, "xpu", "mps", "hpu"),
    **{f"skip{name}": _needs(("device", f"not {name.lower()}")) for name in ("Meta", "XLA", "Lazy", "XPU", "HPU", "MPS", "PRIVATEUSE1")},
    "TEST_XPU": _needs(("device", "xpu"), unless=(("platform", "not XPU"),)),
    "HAS_XPU": _needs(("device", "xpu"), unless=(("platform", "not XPU"),)),
    "TEST_HPU": _needs(("device", "hpu"), unless=(("platform", "not HPU"),)),
    "TEST_MPS": _needs(("device", "mps"), unless=(("platform", "not MPS"),)),
    "HAS_MPS": _needs(("device", "mps"), unless=(("platform", "not MPS"),)),
    "TEST_WITH_MTIA": _needs(("device", "mtia"), unless=(("platform", "not MTIA"),)),
    "TEST_PRIVATEUSE1": _needs(("device", "privateuse1"), unless=(("device", "not privateuse1"),)),
    "RUN_TPU": _needs(("device", "tpu")),
    "HAS_TPU": _needs(("device", "tpu")),
    "HAS_CPU": _library("TorchInductor"),
    "RUN_CPU": _library("TorchInductor"),
    "tensorflow.test.is_gpu_available": _needs(_GPU),
    "torch.xpu.is_available": _needs(("device", "xpu")),
    "is_xpu_available": _needs(("device", "xpu")),
    **{f"torch.{name}.is_available": _needs(("device", name)) for name in ("npu", "mlu", "musa")},
    **{f"is_{name}_available": _needs(("device", name)) for name in ("npu", "mlu", "musa", "hpu", "mps")},
    **{f"is_torch_{name}_available": _needs(("device", name)) for name in ("npu", "mlu", "musa", "hpu", "mps", "xpu")},
    "XLAAccelerator.is_available": _needs(("device", "tpu")),
    "torch.hpu.is_available": _needs(("device", "hpu")),
    "torch.mps.is_available": _needs(("device", "mps")),
    "torch.backends.mps.is_available": _needs(("device", "mps")),
    "torch.backends.mps.is_built": _needs(("device", "mps")),
    "torch.mtia.is_available": _needs(("device", "mtia")),
    "skipIfXpu": _not_on("XPU"),
    "skipIfHpu": _not_on("HPU"),
    "skipIfMPS": _not_on("MPS"),
    "skipIfWindowsXPU": _not_on("XPU on Windows"),
    "skipIfNoXPU": _needs(("device", "xpu")),
    **{f"require_{name}": _needs(("device", name)) for name in ("tpu", "xpu", "mps", "hpu", "npu", "mlu", "musa", "sdaa")},
    **{f"require_torch_{name}": _needs(("device", name)) for name in ("xpu", "mps", "hpu", "npu", "mlu", "hpu")},
    "require_non_xpu": _not_on("XPU"),
    "require_non_hpu": _not_on("HPU"),
    "require_non_torch_xla": _needs(("package", "not torch_xla")),
}
"""Devices other than CUDA's."""

_BUILDS: Mapping[str, Rule] = {
    "IS_WINDOWS": _platform("Windows"),
    "IS_LINUX": _platform("Linux"),
    "IS_MACOS": _platform("macOS"),
    "IS_ARM64": _platform("ARM64"),
    "IS_PPC": _platform("PowerPC"),
    "IS_X86": _platform("x86"),
    "IS_S390X": _platform("s390x"),
    "IS_JETSON": _platform("Jetson"),
    "IS_FBCODE": _platform("fbcode"),
    "is_fbcode": _platform("fbcode"),
    "IS_SANDCASTLE": _platform("Sandcastle"),
    "IS_REMOTE_GPU": _platform("remote GPU"),
    "IS_CI": _platform("CI"),
    "IS_WASM": _platform("WebAssembly"),
    "IS_PYPY": _platform("PyPy"),
    "IS_AVX512_VNNI_SUPPORTED": _platform("AVX-512 VNNI"),
    "TEST_WITH_ROCM": _platform("ROCm"),
    "TEST_ROCM": _platform("ROCm"),
    "torch.version.hip": _platform("ROCm"),
    "torch.version.cuda": _library("CUDA"),
    "TEST_WITH_ASAN": _platform("ASAN"),
    "TEST_WITH_DEV_DBG_ASAN": _platform("debug ASAN"),
    "TEST_WITH_TSAN": _platform("TSAN"),
    "TEST_WITH_UBSAN": _platform("UBSAN"),
    "TEST_WITH_TORCHDYNAMO": _platform("TorchDynamo run"),
    "TEST_WITH_TORCHINDUCTOR": _platform("TorchInductor run"),
    "TEST_WITH_AOT_EAGER": _platform("AOT eager run"),
    "TEST_WITH_CROSSREF": _platform("cross-reference run"),
    "TEST_WITH_TV": _platform("translation validation run"),
    "TEST_WITHOUT_COMPILED_AUTOGRAD": _platform("run without compiled autograd"),
    "TEST_WITH_SLOW_GRADCHECK": _platform("slow gradcheck run"),
    "TEST_SKIP_FAST": _platform("run of slow tests only"),
    "TEST_SKIP_CUDAGRAPH": _platform("run without CUDA graphs"),
    "TEST_CUDA_MEM_LEAK_CHECK": _platform("memory leak check"),
    "TEST_WITH_MIOPEN_SUGGEST_NHWC": _needs(("environment", "PYTORCH_MIOPEN_SUGGEST_NHWC == 1")),
    "NO_MULTIPROCESSING_SPAWN": _platform("without multiprocessing spawn"),
    "TEST_WITH_SLOW": _slow("PYTORCH_TEST_WITH_SLOW"),
    "skip_if_win32": _not_on("Windows"),
    "skipIfWindows": _not_on("Windows"),
    "skip_windows_ci": _not_on("CI on Windows"),
    "skip_if_rocm": _not_on("ROCm"),
    "skip_if_rocm_multiprocess": _not_on("ROCm"),
    "skip_if_rocm_arch_multiprocess": _not_on("ROCm {0|arch}"),
    "skip_if_rocm_ver_lessthan_multiprocess": _needs(("platform", "not ROCm < {0|version}")),
    "skipIfRocm": _not_on("ROCm"),
    "skipIfRocm_BUGGY": _not_on("ROCm"),
    "skipIfXpu_BUGGY": _not_on("XPU"),
    "skipIfHpu_BUGGY": _not_on("HPU"),
    "skipIfRocmArch": _not_on("ROCm {0|arch}"),
    "skipCUDAIfRocm": _for(_not_on("ROCm"), "cuda"),
    "skipRocmIfTorchInductor": _not_on("ROCm and TorchInductor run"),
    "skipIfRocmVersionLessThan": _needs(("platform", "not ROCm < {0|version}")),
    "runOnRocm": _needs(("platform", "ROCm")),
    "runOnRocmArch": _needs(("platform", "ROCm {0|arch}")),
    "skipIfTorchDynamo": _not_on("TorchDynamo run"),
    "skipIfTorchInductor": _not_on("TorchInductor run"),
    "skipIfCrossRef": _not_on("cross-reference run"),
    "skipIfLegacyJitExecutor": _not_on("legacy JIT executor"),
    "skipIfNNModuleInlined": _not_on("inlined modules"),
    "skipIfFreeThreaded": _not_on("free-threaded Python"),
    "skipIfNoX86": _needs(("platform", "x86")),
    "skip_if_pytest": _not_on("pytest run"),
    "onlyIfTranslationValidation": _needs(("platform", "translation validation run")),
    "skipCUDAMemoryLeakCheckIf": Rule(otherwise=""),
    "skipCUDANonDefaultStreamIf": Rule(otherwise=""),
    "skipDtypeChecking": Rule(otherwise=""),
    "skipIfCachingAllocatorDisabled": _needs(("environment", "PYTORCH_NO_CUDA_MEMORY_CACHING not set")),
    "slowTest": _slow("PYTORCH_TEST_WITH_SLOW"),
    "slow": _slow("RUN_SLOW"),
    "tooslow": _needs(("disabled", "too slow")),
    "mark.slow": _needs(("slow", ""), otherwise=""),
}
"""Platforms, builds, kinds of run."""

_LIBRARIES: Mapping[str, Rule] = {
    "skipIfNoFBGEMM": _library("FBGEMM"),
    "skipIfNoQNNPACK": _library("QNNPACK"),
    "skipIfNoXNNPACK": _library("XNNPACK"),
    "skipIfNoONEDNN": _library("oneDNN"),
    "skipIfNoONEDNNBF16": _library("oneDNN with bfloat16"),
    "skipIfNoLapack": _library("LAPACK"),
    "skipIfNoDynamoSupport": _library("TorchDynamo"),
    "skipIfNoInductorSupport": _library("TorchInductor"),
    "skipIfNoTriton": _package("triton"),
    "skipIfNotPy311": _library("Python >= 3.11"),
    "skipCPUIfNoLapack": _for(_library("LAPACK"), "cpu"),
    "skipCPUIfNoMkl": _for(_library("MKL"), "cpu"),
    "skipCPUIfNoFFT": _for(_library("FFT"), "cpu"),
    "skipCPUIfNoMklSparse": _for(_library("MKL"), "cpu"),
    "skipCPUIfNoMkldnn": _for(_library("oneDNN"), "cpu"),
    "skipCUDAIfNoMagma": _for(_library("MAGMA"), "cuda"),
    "skipCUDAIfNoMagmaAndNoCusolver": _for(_library("MAGMA or cuSOLVER"), "cuda"),
    "skipCUDAIfNoMagmaAndNoLinalgsolver": _for(_library("MAGMA or cuSOLVER"), "cuda"),
    "skipCUDAIfNoCusolver": _for(_library("cuSOLVER"), "cuda"),
    "skipCUDAIfNoCusolverROCMIfNoMagma": _for(_library("cuSOLVER or MAGMA"), "cuda"),
    "skipCUDAIfNoCudnn": _for(_library("cuDNN"), "cuda"),
    "skipCUDAIfCudnnVersionLessThan": _for(_library("cuDNN >= {0|version}"), "cuda"),
    "skipCUDAIfNoCusparseGeneric": _for(_library("cuSPARSE"), "cuda"),
    "skipCUDAIfNoHipsparseGeneric": _for(_library("hipSPARSE"), "cuda"),
    "skipCUDAIfNoSparseGeneric": _for(_library("cuSPARSE or hipSPARSE"), "cuda"),
    "skipCUDAIfMiopen": _for(_library("not MIOpen"), "cuda"),
    "skipCUDAIfNoMiopen": _for(_library("MIOpen"), "cuda"),
    "skipCUDAIfNotMiopenSuggestNHWC": _for(_library("MIOpen"), "cuda"),
    "skipIfNotMiopenSuggestNHWC": _library("MIOpen"),
    "skipCUDAIfNotRocm": _for(_platform("ROCm"), "cuda"),
    "skipCUDAIfRocmVersionLessThan": _for(_needs(("platform", "not ROCm < {0|version}")), "cuda"),
    "skipCUDAIfRocmHipBlasltVersionLessThan": _for(_needs(("library", "hipBLASLt >= {0|version}")), "cuda"),
    "skipCUDAIfVersionLessThan": _for(_library("CUDA >= {0|versions}"), "cuda"),
    "TEST_MKL": _library("MKL"),
    "TEST_ONEDNN": _library("oneDNN"),
    "TEST_ACL": _library("Arm Compute Library"),
    "torch.backends.mkl.is_available": _library("MKL"),
    "torch.backends.mkldnn.is_available": _library("oneDNN"),
    "torch._C.has_mkldnn": _library("oneDNN"),
    "torch._C.has_lapack": _library("LAPACK"),
    "torch.backends.cudnn.is_available": _needs(_GPU, ("library", "cuDNN")),
    "torch.backends.openmp.is_available": _library("OpenMP"),
    "torch.backends.xnnpack.enabled": _library("XNNPACK"),
    "torch.backends.cusparselt.is_available": _needs(_GPU, ("library", "cuSPARSELt")),
    "torch.profiler.itt.is_available": _library("ITT"),
    "kineto_available": _library("Kineto"),
    "is_dynamo_supported": _library("TorchDynamo"),
    "is_inductor_supported": _library("TorchInductor"),
    "has_triton": _package("triton"),
    "has_triton_package": _package("triton"),
    "is_triton_supported": _package("triton"),
    "requires_triton_ptxas_compat": _package("triton"),
    "skipIfDSLUnavailable": _package("{0|dsl_name}"),
    "skipUnlessDSLAvailable": _package("{0|dsl_name}"),
    "required_torch_version": Rule(
        _library("torch >= {0|min_version}").needs,
        keywords=(("min_version", (("library", "torch >= {}"),)), ("max_version", (("library", "torch <= {}"),))),
    ),
    "require_torch_min_version": _library("torch >= {0|version}"),
    "require_torch_greater_or_equal": _library("torch >= {0|version}"),
    "is_torch_min_version": _library("torch >= {0|version}"),
    "is_torch_version": _library("torch {0|operation} {1|version}"),
    "require_fsdp": _library("torch >= 1.12"),
    "is_te_min_version": _package("transformer_engine >= {0|version}"),
}
"""Libraries that a build of PyTorch holds, and versions."""

_PACKAGES: Mapping[str, Rule] = {
    "importorskip": _package("{0|modname}"),
    "pytest.importorskip": _package("{0|modname}"),
    "importlib.util.find_spec": _package("{0|name}"),
    "find_spec": _package("{0|name}"),
    "module_available": _package("{0}"),
    "_module_available": _package("{0}"),
    "_check_module_exists": _package("{0|name}"),
    "package_available": _package("{0}"),
    "_package_available": _package("{0}"),
    "is_package_available": _package("{0}"),
    "_is_package_available": _package("{0}"),
    "RequirementCache": _package("{0|requirement}"),
    "requires_package": _package("{0}"),
    "import_transformers_or_skip": _package("transformers"),
    "skipIfNoTorchVision": _package("torchvision"),
    "skipIfNoSciPy": _package("scipy"),
    "skipIfNoDill": _package("dill"),
    "skipIfCompiledWithoutNumpy": _package("numpy"),
    "TEST_CUDA_PYTHON_BINDINGS": _needs(("package", "cuda"), ("library", "CUDA")),
    "TEST_NVMATH": _needs(("package", "nvmath"), ("library", "CUDA")),
    "TEST_NUMBA_CUDA": _needs(_GPU, ("package", "numba")),
    "TEST_LIBROSA": _package("librosa"),
    "TEST_TRITON_DSL": _package("triton"),
    "TEST_CUTEDSL": _package("cutlass"),
    "HAS_HELION": _package("helion"),
    "HAS_PALLAS": _package("jax"),
    **dict(
        _packages("TEST_", "NUMPY=numpy NUMBA=numba SCIPY=scipy TRANSFORMERS=transformers DILL=dill FAIRSEQ=fairseq Z3=z3 PYNVML=pynvml")
    ),
    **dict(_packages("TEST_", "OPT_EINSUM=opt_einsum MATPLOTLIB=matplotlib")),
    **dict(
        _packages("HAS_", "TRITON=triton TORCHVISION=torchvision PSUTIL=psutil PANDAS=pandas NUMPY=numpy NETWORKX=networkx HALIDE=halide")
    ),
    **dict(_packages("HAS_", "CUPY=cupy TRANSFORMERS=transformers TLPARSE=tlparse SCIPY=scipy YAML=yaml")),
    **dict(_packages("require_", "deepspeed transformers timm torchvision triton bitsandbytes bnb=bitsandbytes wandb comet_ml clearml")),
    **dict(_packages("require_", "dvclive swanlab trackio matplotlib pandas mlflow aim import_timer megatron_lm=megatron schedulefree")),
    **dict(
        _packages(
            "require_",
            "transformer_engine torchao torchdata_stateful_dataloader=torchdata lomo=lomo_optim msamp peft accelerate flash_attn",
        )
    ),
    **dict(
        _packages("require_", "torch tf=tensorflow tensorflow flax vision=PIL tokenizers sentencepiece apex optimum auto_gptq auto_awq=awq")
    ),
    **dict(_packages("require_", "scipy sklearn torchaudio ray")),
    "require_huggingface_suite": _needs(("package", "transformers"), ("package", "datasets")),
    "require_tensorboard": _package("tensorboard or tensorboardX"),
    "is_tensorboard_available": _package("tensorboard or tensorboardX"),
    "is_deepspeed_available": _package("deepspeed"),
    "is_transformers_available": _package("transformers"),
    "is_torch_available": _package("torch"),
    "is_triton_available": _package("triton"),
    "is_bnb_available": _package("bitsandbytes"),
    **dict(_packages("is_", "accelerate bitsandbytes datasets diffusers optimum peft scipy sentencepiece", "_available")),
    **dict(_packages("is_", "timm tokenizers torchao torchaudio torchvision wandb", "_available")),
}
"""Packages."""

_RUN_IF: Mapping[str, Rule] = {
    "RunIf": Rule(
        keywords=(
            ("min_cuda_gpus", (("gpus", "{}"),)),
            ("min_gpus", (("gpus", "{}"),)),
            ("min_torch", (("library", "torch >= {}"),)),
            ("max_torch", (("library", "torch < {}"),)),
            ("min_python", (("library", "Python >= {}"),)),
            ("bf16_cuda", (("device", "GPU with bfloat16"),)),
            ("tpu", (("device", "tpu"),)),
            ("mps", (("device", "mps"),)),
            ("skip_windows", (("platform", "not Windows"),)),
            ("linux_only", (("platform", "Linux"),)),
            ("standalone", (("environment", "PL_RUN_STANDALONE_TESTS == 1"),)),
            ("slow", (("slow", "PL_RUN_SLOW_TESTS == 1"),)),
            ("deepspeed", (("package", "deepspeed"),)),
            ("dynamo", (("library", "TorchDynamo"),)),
            ("sklearn", (("package", "sklearn"),)),
            ("onnx", (("package", "onnx"),)),
            ("psutil", (("package", "psutil"),)),
            ("rich", (("package", "rich"),)),
            ("omegaconf", (("package", "omegaconf"),)),
            ("bitsandbytes", (("package", "bitsandbytes"),)),
        )
    ),
}
"""Decorators that say all by their keywords."""


_SKIP_IF = Rule(condition=False)
_RUN_WHEN = Rule(condition=True)

_CONDITIONS: Mapping[str, Rule] = {
    **dict.fromkeys(("skipIf", "skip_if", "mark.skipif", "skip_but_pass_in_sandcastle_if", "lazy_skip_if"), _SKIP_IF),
    **dict.fromkeys(("skipper", "_skipper"), _SKIP_IF),
    **dict.fromkeys(("skipUnless", "skip_unless", "run_if"), _RUN_WHEN),
    "slowTestIf": Rule(otherwise=""),
    "skipGPUIf": _for(_SKIP_IF, "cuda", "xpu"),
    **{
        f"skip{name}If": _for(_SKIP_IF, name.lower()) for name in ("CUDA", "CPU", "XPU", "MPS", "HPU", "Meta", "XLA", "Lazy", "PRIVATEUSE1")
    },
}
"""Decorators whose first argument is a condition."""

_DISABLED = Rule((("disabled", "{0|reason=}"),))

_SKIPS: Mapping[str, Rule] = dict.fromkeys(
    ("unittest.skip", "unittest.case.skip", "absltest.skip", "mark.skip", "skip_but_pass_in_sandcastle", "mark.disabled", "disabled"),
    _DISABLED,
)
"""Decorators that disable a test, whatever the machine."""

NAMES: Mapping[str, Rule] = {
    **_GPUS_ROWS,
    **_RANKS,
    **_BACKENDS,
    **_HARDWARE,
    **_DEVICES,
    **_BUILDS,
    **_LIBRARIES,
    **_PACKAGES,
    **_RUN_IF,
    **_CONDITIONS,
    **_SKIPS,
}
"""What a name means, by the end of its dotted name: `skip_if_lt_x_gpu`, `torch.cuda.is_available`, `mark.gpu`."""

COUNTS: Mapping[str, tuple[str, str]] = {
    "torch.cuda.device_count": ("gpus", ""),
    "torch.accelerator.device_count": ("gpus", ""),
    "device_module.device_count": ("gpus", ""),
    "get_accelerator.device_count": ("gpus", ""),
    "current_platform.device_count": ("gpus", ""),
    "get_device_module.device_count": ("gpus", ""),
    "torch.cuda._device_count_nvml": ("gpus", ""),
    "torch.cuda._device_count_amdsmi": ("gpus", ""),
    "torch._C._cuda_getDeviceCount": ("gpus", ""),
    "cuda_device_count_stateless": ("gpus", ""),
    "num_cuda_devices": ("gpus", ""),
    "get_gpu_count": ("gpus", ""),
    "torch.cuda.get_device_capability": ("capability", ""),
    "torch.cuda.get_device_properties.major": ("capability", ""),
    "torch.cuda.nccl.version": ("library", "NCCL"),
    "_get_torch_cuda_version": ("library", "CUDA"),
    "torch.version.cuda": ("library", "CUDA"),
    "_get_torch_rocm_version": ("library", "ROCm"),
    "torch.backends.cudnn.version": ("library", "cuDNN"),
    "torch.__version__": ("library", "torch"),
    "TORCH_VERSION": ("library", "torch"),
    "get_torch_version": ("library", "torch"),
    "sys.version_info": ("library", "Python"),
    "platform.python_version": ("library", "Python"),
}
"""Kind and name of what a condition compares with a number or a version."""

HOLDERS: Mapping[str, str] = {
    "torch.backends.quantized.supported_engines": "library",
    "supported_qengines": "library",
    "SEMI_STRUCTURED_SUPPORTED_BACKENDS": "library",
}
"""Kind of what a condition looks for in a collection."""

INDEXED: Mapping[str, tuple[str, str]] = {"deepspeed.ops.__compatible_ops__": ("library", "DeepSpeed")}
"""Kind, and first word, of what a condition looks up in a mapping of what is there."""

DEVICE_NAMES = frozenset({"get_accelerator.device_name", "torch_device", "GPU_TYPE", "torch.testing._internal.inductor_utils.GPU_TYPE"})
"""What names the kind of device that the tests run on; `cpu` where there is no other."""

SPELLINGS: Mapping[str, str] = {
    "fbgemm": "FBGEMM",
    "qnnpack": "QNNPACK",
    "onednn": "oneDNN",
    "cusparselt": "cuSPARSELt",
    "cutlass": "CUTLASS",
}
"""How a library is written that a condition writes otherwise."""

SYSTEMS: Mapping[str, str] = {
    **dict.fromkeys(("win32", "win", "cygwin", "nt", "windows", "Windows"), "Windows"),
    **dict.fromkeys(("linux", "linux2", "Linux"), "Linux"),
    **dict.fromkeys(("darwin", "Darwin", "mac"), "macOS"),
    **dict.fromkeys(("aarch64", "arm64"), "ARM64"),
    **dict.fromkeys(("x86_64", "AMD64", "i386"), "x86"),
    "posix": "POSIX",
    "ppc64le": "PowerPC",
}
"""How a platform is called that a condition names by a value of `sys.platform`, `os.name` or `platform`."""

SYSTEM_NAMES = frozenset({
    "sys.platform", "os.name", "os.uname.machine", "platform.system", "platform.machine", "platform.processor",
    "platform.python_implementation",
})  # fmt: skip
"""What tells the platform."""

VERSIONS = frozenset({"parse", "Version", "LooseVersion", "StrictVersion", "TorchVersion", "parse_version", "bool", "int", "str", "tuple"})
"""Calls around a value that do not change what is compared."""

NUMBERS: Mapping[str, str] = {"TEST_GPU_NUM": "4"}
"""Constants of harnesses, for trees that do not hold them."""

CONSTANTS: Mapping[str, str] = {
    "DistTestCases.backend_feature['gpu']": "('nccl', 'gloo', 'ucc')",
    "DistTestCases.backend_feature['cuda']": "('nccl', 'gloo', 'ucc')",
    "DistTestCases.backend_feature['ddp']": "('nccl', 'gloo', 'ucc')",
    "DistTestCases.backend_feature['subgroup']": "('nccl', 'gloo', 'ucc')",
    "DistTestCases.backend_feature['plugin']": "()",
    "DistTestCases.skip_collective['allgather_coalesced']": "('nccl', 'mpi', 'ucc', 'xccl')",
    "DistTestCases.skip_collective['reduce']": "()",
    "DistTestCases.skip_collective['sendrecv anysource']": "('nccl', 'ucc', 'xccl')",
    "DistTestCases.skip_collective['cpu barrier']": "('nccl', 'ucc', 'xccl')",
}
"""Entries of tables that a harness fills while it is imported."""

ATTRIBUTES: Mapping[str, str] = {
    "world_size": "world size",
    "backend_str": "backend",
    "backend": "backend",
    "device_type": "device",
    "device": "device",
}
"""What an attribute, a property or a method of a test class says, by its name."""

DISTRIBUTED = re.compile(
    r"(?:(?:\w+:)?(?:gloo|nccl|mpi|ucc|[a-z]?ccl|cncl|bkcl|smddp|flagcx|xla|fake|threaded)(?::\d+)?(?:,|$))+", re.IGNORECASE
)
"""How a backend of torch.distributed is called, or several: `gloo`, `cpu:gloo,cuda:nccl`."""

PASSED_OVER = frozenset({
    "parametrize", "usefixtures", "filterwarnings", "xfail", "expectedFailure", "skipOps", "timeout", "asyncio", "flaky", "anyio", "forked",
    "tryfirst", "trylast", "hookwrapper", "order", "run", "dependency", "django_db", "no_cover", "requires_grad_", "xdist_group",
})  # fmt: skip
"""Marks and decorators that are no requirement, whatever they look like."""
