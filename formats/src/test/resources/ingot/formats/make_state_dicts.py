#!/usr/bin/python3
"""Makes the small PyTorch files of StateDictTest. Run: /usr/bin/python3 make_state_dicts.py (python3-torch 1.13).

Values follow a rule, so that the test needs no second file: element i of a tensor named n is len(n) + i / 4.
"""
import collections
import os
import pickle
import sys

import torch

HERE = os.path.dirname(os.path.abspath(__file__))


def values(name, *shape, dtype=torch.float32):
    count = 1
    for dim in shape:
        count *= dim
    return (len(name) + torch.arange(count) / 4).reshape(shape).to(dtype)


def main():
    plain = collections.OrderedDict()
    for name, dtype in [("float", torch.float32), ("half", torch.float16), ("brain", torch.bfloat16),
                        ("double", torch.float64)]:
        plain[name + ".weight"] = values(name + ".weight", 2, 3, dtype=dtype)
    for name, dtype in [("long", torch.int64), ("int", torch.int32), ("short", torch.int16), ("byte", torch.uint8),
                        ("bool", torch.bool)]:
        plain[name] = torch.arange(4).to(dtype)
    plain["scalar"] = torch.tensor(2.5)
    plain["empty"] = torch.zeros(0, 3)
    base = values("views", 4, 6)
    plain["views.transposed"] = base.t()
    plain["views.slice"] = base[1:3, ::2]
    plain["views.row"] = base[2]
    plain["parameter"] = torch.nn.Parameter(values("parameter", 2, 2))
    torch.save(plain, os.path.join(HERE, "state-dict.pt"))

    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU(), torch.nn.BatchNorm1d(2))
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            tensor.copy_(values(name, *tensor.shape))
    torch.save({"epoch": 3, "rate": 1e-3, "done": False, "history": [1.5, (2, None)], "state_dict": model.state_dict()},
               os.path.join(HERE, "checkpoint.pth"))
    torch.save(model.state_dict(), os.path.join(HERE, "legacy.pt"), _use_new_zipfile_serialization=False)
    torch.save(model, os.path.join(HERE, "whole-module.pt"))

    # the weights of HuggingFaceTest's Llama: element i is i / 8
    layer = "model.layers.0."
    shapes = {"model.embed_tokens": (11, 8), layer + "input_layernorm": (8,), layer + "self_attn.q_proj": (8, 8),
              layer + "self_attn.k_proj": (4, 8), layer + "self_attn.v_proj": (4, 8), layer + "self_attn.o_proj": (8, 8),
              layer + "post_attention_layernorm": (8,), layer + "mlp.gate_proj": (6, 8), layer + "mlp.up_proj": (6, 8),
              layer + "mlp.down_proj": (8, 6), "model.norm": (8,), "lm_head": (11, 8)}
    torch.save(collections.OrderedDict((name + ".weight", (torch.arange(torch.Size(shape).numel()) / 8).reshape(shape).bfloat16())
                                       for name, shape in shapes.items()), os.path.join(HERE, "pytorch_model.bin"))

    class Attack:
        def __reduce__(self):
            return os.system, ("touch " + "attacked",)

    torch.save({"weight": torch.zeros(2), "attack": Attack()}, os.path.join(HERE, "malicious.pt"))


if __name__ == "__main__":
    sys.exit(main())
