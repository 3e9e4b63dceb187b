"""Inference with 8-bit integers on a CPU: replaces the linear layers of an open model.

Weights have a scale for each output, computed when the model is opened. All inputs of a layer share a scale, computed
for each batch. Other layers keep 32-bit floats. PyTorch is imported with this module.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from torch import nn

from retrievers.base import RetrieverError


class Int8Linear(nn.Module):
    """A linear layer that multiplies 8-bit integers; its inputs, outputs and bias are 32-bit floats.

    Processors without VNNI instructions add two products in 16 bits, so there the inputs have only 7 bits.
    """

    def __init__(self, layer: nn.Linear) -> None:
        """Quantize the weights of a layer."""
        super().__init__()
        weight = layer.weight.detach()
        largest = weight.abs().amax(dim=1).clamp(min=torch.finfo(weight.dtype).tiny)
        scales, zeros = largest / torch.iinfo(torch.int8).max, torch.zeros(len(weight), dtype=torch.long)
        with warnings.catch_warnings():  # PyTorch announces other types for such codes, but its layers need these
            warnings.simplefilter("ignore", UserWarning)
            codes = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
        self._packed = torch.ops.quantized.linear_prepack(codes, layer.bias)
        self._seven_bits = not _has_vnni()

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the outputs of inputs, shape (..., width)."""
        outputs: torch.Tensor = torch.ops.quantized.linear_dynamic(inputs, self._packed, self._seven_bits)
        return outputs


def quantize_linear_layers(model: nn.Module, name: str) -> None:
    """Replace the linear layers of an open model, in place; raises `RetrieverError` if it has none."""
    layers = [
        (parent, child, layer)
        for parent in model.modules()
        for child, layer in parent.named_children()
        if type(layer) is nn.Linear  # others compute something else, or are read by the layer that has them
    ]
    if not layers:
        raise RetrieverError(f"precision=int8: {name} has no linear layers to quantize; set precision=fp32")
    for parent, child, layer in layers:
        setattr(parent, child, Int8Linear(layer))


def _has_vnni() -> bool:
    """Return whether the processor has VNNI instructions; False if PyTorch is too old to tell."""
    describe: Callable[[], dict[str, object]] = getattr(torch.cpu, "get_capabilities", dict)
    return bool(describe().get("avx512_vnni"))
