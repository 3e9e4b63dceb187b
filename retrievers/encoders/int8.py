"""Inference with 8-bit integers on a CPU: replaces the linear layers of an open model.

Weights have a scale for each output, computed when the model is opened. All inputs of a layer share a scale, computed
for each batch. A single input that is far larger than the others would make this scale too coarse for them, so the two
largest inputs of each layer, and their weights, remain 32-bit floats, as in LLM.int8() (Dettmers et al. 2022,
https://arxiv.org/abs/2208.07339). They are found once, on random tokens. Other layers keep 32-bit floats. PyTorch is
imported with this module.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from retrievers.errors import RetrieverError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

EXACT_INPUTS = 2
"""How many inputs of a layer remain 32-bit floats: those with the largest values."""

_SAMPLE_TEXTS, _SAMPLE_TOKENS = 8, 200


class Int8Linear(nn.Module):
    """A linear layer that multiplies 8-bit integers, except for the inputs at `exact`, which remain 32-bit floats.

    Its outputs and bias are 32-bit floats. Processors without VNNI instructions add two products in 16 bits, so there
    the inputs have only 7 bits.
    """

    def __init__(self, layer: nn.Linear, exact: torch.Tensor) -> None:
        """Quantize the weights of a layer."""
        super().__init__()
        weight = layer.weight.detach().clone()
        self.exact, self._exact_weight = exact, weight[:, exact].t().contiguous()
        weight[:, exact] = 0
        largest = weight.abs().amax(dim=1).clamp(min=torch.finfo(weight.dtype).tiny)
        scales, zeros = largest / torch.iinfo(torch.int8).max, torch.zeros(len(weight), dtype=torch.long)
        with warnings.catch_warnings():  # PyTorch announces other types for such codes, but its layers need these
            warnings.simplefilter("ignore", UserWarning)
            codes = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
        self._packed = torch.ops.quantized.linear_prepack(codes, layer.bias)
        self._seven_bits = not _has_vnni()

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the outputs of inputs, shape (..., width)."""
        rows = inputs.reshape(-1, inputs.shape[-1])
        exact = rows[:, self.exact]
        rows[:, self.exact] = 0  # until the others are quantized, so that they determine the scale; faster than a copy
        outputs: torch.Tensor = torch.ops.quantized.linear_dynamic(rows, self._packed, self._seven_bits)
        rows[:, self.exact] = exact
        return outputs.addmm_(exact, self._exact_weight).view(*inputs.shape[:-1], -1)


def quantize_linear_layers(model: SentenceTransformer, name: str) -> None:
    """Replace the linear layers of an open model, in place; raises `RetrieverError` if it has none."""
    layers = [
        (parent, child, layer)
        for parent in model.modules()
        for child, layer in parent.named_children()
        if type(layer) is nn.Linear  # others compute something else, or are read by the layer that has them
    ]
    if not layers:
        raise RetrieverError(f"precision=int8: {name} has no linear layers to quantize; set precision=fp32")
    peaks = _measure_peaks(model, [layer for _, _, layer in layers])
    for (parent, child, layer), peak in zip(layers, peaks, strict=True):
        exact = peak.topk(min(EXACT_INPUTS, len(peak))).indices.sort().values
        setattr(parent, child, Int8Linear(layer, exact))


def _measure_peaks(model: SentenceTransformer, layers: list[nn.Linear]) -> list[torch.Tensor]:
    """Return the largest absolute value of each input of each layer, over texts of random tokens."""
    peaks = [torch.zeros(layer.in_features) for layer in layers]

    def observe(peak: torch.Tensor, layer: nn.Module, inputs: tuple[torch.Tensor]) -> None:
        torch.maximum(peak, inputs[0].detach().abs().flatten(0, -2).amax(dim=0), out=peak)

    hooks = [layer.register_forward_pre_hook(partial(observe, peak)) for layer, peak in zip(layers, peaks, strict=True)]
    ids = np.random.default_rng(0).integers(len(model.tokenizer), size=(_SAMPLE_TEXTS, _SAMPLE_TOKENS))
    texts = [model.tokenizer.decode(text, skip_special_tokens=True) for text in ids]
    model.encode(texts, batch_size=_SAMPLE_TEXTS, show_progress_bar=False)
    for hook in hooks:
        hook.remove()
    return peaks


def _has_vnni() -> bool:
    """Return whether the processor has VNNI instructions; False if PyTorch is too old to tell."""
    describe: Callable[[], dict[str, object]] = getattr(torch.cpu, "get_capabilities", dict)
    return bool(describe().get("avx512_vnni"))
