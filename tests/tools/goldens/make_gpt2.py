#!/usr/bin/env python3
"""Writes gpt2.txt: what GPT2LMHeadModel of `transformers` computes in float64, for ../gpt2_test.cc.

Needs PyTorch and transformers. A formula gives weights and ids (`drawn`, also in the test), so the file has none of them. Lines:
`tensor NAME SIZES...` for each weight as it is stored, in the order of the formula's seeds; `loss VALUE`; `logits VALUES...`, every
53rd; `gradient NAME NORM ALONG`, where ALONG is the product with a drawn direction.
"""

import pathlib

import torch
from transformers import GPT2Config, GPT2LMHeadModel

SYMBOLS, CONTEXT, ROWS, LENGTH, EVERY = 512, 64, 2, 16, 53


def hashed(count, seed):
    """32 bits for each number below `count`."""
    mask = 0xFFFFFFFF
    values = []
    for i in range(count):
        h = (i * 2654435761 + seed * 40503 + 1) & mask
        h = ((h ^ h >> 15) * 2246822519) & mask
        h = ((h ^ h >> 13) * 3266489917) & mask
        values.append(h ^ h >> 16)
    return torch.tensor(values)


def drawn(sizes, seed):
    """Numbers between -0.1 and 0.1 in steps that float32 has."""
    count = torch.Size(sizes).numel()
    return ((hashed(count, seed) >> 12).double() / 2**20 - 0.5).mul(0.2).float().double().view(sizes)


def main():
    config = GPT2Config(
        vocab_size=SYMBOLS, n_positions=CONTEXT, n_embd=64, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0,
        attn_implementation="eager",
    )
    model = GPT2LMHeadModel(config).double().eval()
    weights = sorted(model.transformer.named_parameters(), key=lambda item: item[0])
    lines = []
    with torch.no_grad():
        for seed, (name, weight) in enumerate(weights):
            norm = ".ln_" in "." + name and name.endswith("weight")
            weight.copy_((drawn(weight.shape, seed) + (1.0 if norm else 0.0)).float())
            lines.append(" ".join(["tensor", name, *map(str, weight.shape)]))
    ids = (hashed(ROWS * (LENGTH + 1), 1000) % SYMBOLS).view(ROWS, LENGTH + 1)
    logits = model(ids[:, :-1]).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    lines.append(f"loss {loss.item():.12g}")
    lines.append(" ".join(["logits", *(f"{v:.10g}" for v in logits.flatten()[::EVERY].tolist())]))
    for seed, (name, weight) in enumerate(weights):
        along = (weight.grad * drawn(weight.shape, 500 + seed)).sum()
        lines.append(f"gradient {name} {weight.grad.norm().item():.12g} {along.item():.12g}")
    pathlib.Path(__file__).with_name("gpt2.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
