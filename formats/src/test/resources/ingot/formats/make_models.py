#!/usr/bin/python3
"""Makes the tiny models of ArchitectureTest: config.json, model.safetensors (F16) and expected.safetensors each.

Run: /usr/bin/python3 make_models.py (python3-torch 1.13). The architectures are written out here as functions of the
named weights, after the papers and the configuration classes of Hugging Face; everything is computed in float64 from
the stored weights. Text models of 2 x 7 tokens, the last two of the second row padding.
"""
import json
import math
import os
import struct

import numpy as np
import torch
import torch.nn.functional as F

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "models")
CODES = {torch.float16: "F16", torch.float32: "F32", torch.int64: "I64"}
VOCAB, WIDTH, INNER, LAYERS, T5_LAYERS = 13, 8, 12, 1, 2


def write(path, tensors):
    header, blobs, offset = {}, [], 0
    for name, tensor in tensors.items():
        raw = tensor.contiguous().numpy().tobytes()
        header[name] = {"dtype": CODES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [offset, offset + len(raw)]}
        blobs.append(raw)
        offset += len(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


class Spec(dict):
    """Shapes by name; random values around a mean."""

    def __init__(self, seed):
        super().__init__()
        self.random = np.random.RandomState(seed)

    def add(self, name, *shape, mean=0.0, std=0.5):
        value = torch.from_numpy(mean + std * self.random.standard_normal(shape))
        self[name] = value.half().double()

    def linear(self, name, out, inner, bias):
        self.add(name + ".weight", out, inner, std=1 / math.sqrt(inner))
        if bias:
            self.add(name + ".bias", out, std=0.2)

    def norm(self, name, width, bias, mean=1.0):
        self.add(name + ".weight", width, mean=mean, std=0.2)
        if bias:
            self.add(name + ".bias", width, std=0.2)


def linear(p, name, x):
    return F.linear(x, p[name + ".weight"], p.get(name + ".bias"))


def layer_norm(p, name, x, eps=1e-5):
    return F.layer_norm(x, x.shape[-1:], p[name + ".weight"], p[name + ".bias"], eps)


def rms_norm(weight, x, eps):
    return weight * x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps)


def gelu_tanh(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def turned(x, frequencies, magnitude=1.0):
    """x [B, T, H, D]: pairs (i, i + n) of the first 2n channels turn by position * frequency."""
    n = len(frequencies)
    angle = torch.arange(x.shape[1], dtype=torch.float64)[:, None, None] * torch.tensor(frequencies, dtype=torch.float64)
    cos, sin = magnitude * torch.cos(angle), magnitude * torch.sin(angle)
    a, b = x[..., :n], x[..., n:2 * n]
    return torch.cat([a * cos - b * sin, b * cos + a * sin, x[..., 2 * n:]], -1)


def attend(q, k, v, seen, scale, bias=None):
    """q [B, T, H, D], k and v [B, S, K, D], seen [B, 1, T, S] -> [B, T, H * D]."""
    groups = q.shape[2] // k.shape[2]
    k, v = k.repeat_interleave(groups, 2), v.repeat_interleave(groups, 2)
    scores = torch.einsum("bthd,bshd->bhts", q, k) * scale
    if bias is not None:
        scores = scores + bias
    scores = scores.masked_fill(~seen, -1e30)
    return torch.einsum("bhts,bshd->bthd", torch.softmax(scores, -1), v).flatten(2)


def causal(mask):
    t = mask.shape[1]
    return torch.ones(t, t).tril().bool()[None, None] & mask.bool()[:, None, None, :]


def split(x, heads):
    return x.reshape(x.shape[0], x.shape[1], heads, -1)


# ---------------------------------------------------------------------------------------------------- decoders
def plain_frequencies(width, base):
    return [base ** (-2 * i / width) for i in range(width // 2)]


def llama3_frequencies(width, base, factor, low, high, context):
    result = []
    for f in plain_frequencies(width, base):
        wave = 2 * math.pi / f
        if wave < context / high:
            result.append(f)
        elif wave > context / low:
            result.append(f / factor)
        else:
            smooth = (context / wave - low) / (high - low)
            result.append((1 - smooth) * f / factor + smooth * f)
    return result


def yarn_frequencies(width, base, factor, context, fast, slow):
    def dim(turns):
        return width * math.log(context / (turns * 2 * math.pi)) / (2 * math.log(base))
    low, high = max(math.floor(dim(fast)), 0), min(math.ceil(dim(slow)), width - 1)
    result = []
    for i, f in enumerate(plain_frequencies(width, base)):
        ramp = min(max((i - low) / max(high - low, 0.001), 0), 1)
        result.append(f / factor * ramp + f * (1 - ramp))
    return result


def family(kind, seed, heads, keys, head, config, frequencies, magnitude=1.0):
    """Llama's relatives: qwen3 normalises queries and keys per head, gemma shifts its norms and scales its input."""
    gemma, tied = kind == "gemma", config.get("tie_word_embeddings", kind == "gemma")
    mean = 0.0 if gemma else 1.0
    s = Spec(seed)
    s.add("model.embed_tokens.weight", VOCAB, WIDTH)
    for i in range(LAYERS):
        n = f"model.layers.{i}."
        s.norm(n + "input_layernorm", WIDTH, False, mean)
        s.linear(n + "self_attn.q_proj", heads * head, WIDTH, False)
        s.linear(n + "self_attn.k_proj", keys * head, WIDTH, False)
        s.linear(n + "self_attn.v_proj", keys * head, WIDTH, False)
        s.linear(n + "self_attn.o_proj", WIDTH, heads * head, False)
        if kind == "qwen3":
            s.norm(n + "self_attn.q_norm", head, False)
            s.norm(n + "self_attn.k_norm", head, False)
        s.norm(n + "post_attention_layernorm", WIDTH, False, mean)
        s.linear(n + "mlp.gate_proj", INNER, WIDTH, False)
        s.linear(n + "mlp.up_proj", INNER, WIDTH, False)
        s.linear(n + "mlp.down_proj", WIDTH, INNER, False)
    s.norm("model.norm", WIDTH, False, mean)
    if not tied:
        s.linear("lm_head", VOCAB, WIDTH, False)
    eps = config["rms_norm_eps"]

    def forward(p, tokens, mask):
        def norm(name, x):
            weight = p[name + ".weight"]
            return rms_norm(1 + weight if gemma else weight, x, eps)
        x = p["model.embed_tokens.weight"][tokens]
        if gemma:
            x = x * math.sqrt(WIDTH)
        for i in range(LAYERS):
            n = f"model.layers.{i}."
            y = norm(n + "input_layernorm", x)
            q = split(linear(p, n + "self_attn.q_proj", y), heads)
            k = split(linear(p, n + "self_attn.k_proj", y), keys)
            v = split(linear(p, n + "self_attn.v_proj", y), keys)
            if kind == "qwen3":
                q, k = norm(n + "self_attn.q_norm", q), norm(n + "self_attn.k_norm", k)
            q, k = turned(q, frequencies, magnitude), turned(k, frequencies, magnitude)
            x = x + linear(p, n + "self_attn.o_proj", attend(q, k, v, causal(mask), head ** -0.5))
            y = norm(n + "post_attention_layernorm", x)
            act = gelu_tanh if gemma else F.silu
            y = act(linear(p, n + "mlp.gate_proj", y)) * linear(p, n + "mlp.up_proj", y)
            x = x + linear(p, n + "mlp.down_proj", y)
        x = norm("model.norm", x)
        return x @ p["model.embed_tokens.weight" if tied else "lm_head.weight"].t()

    config = {"architectures": ["X"], "model_type": kind, "vocab_size": VOCAB, "hidden_size": WIDTH,
              "intermediate_size": INNER, "num_hidden_layers": LAYERS, "num_attention_heads": heads,
              "num_key_value_heads": keys, "head_dim": head, "max_position_embeddings": 32, **config}
    return config, s, forward


def phi(seed):
    heads, head, frequencies = 2, 4, plain_frequencies(2, 10000.0)
    s = Spec(seed)
    s.add("model.embed_tokens.weight", VOCAB, WIDTH)
    for i in range(LAYERS):
        n = f"model.layers.{i}."
        s.norm(n + "input_layernorm", WIDTH, True)
        for part in ("q_proj", "k_proj", "v_proj", "dense"):
            s.linear(n + "self_attn." + part, WIDTH, WIDTH, True)
        s.linear(n + "mlp.fc1", INNER, WIDTH, True)
        s.linear(n + "mlp.fc2", WIDTH, INNER, True)
    s.norm("model.final_layernorm", WIDTH, True)
    s.linear("lm_head", VOCAB, WIDTH, True)

    def forward(p, tokens, mask):
        x = p["model.embed_tokens.weight"][tokens]
        for i in range(LAYERS):
            n = f"model.layers.{i}."
            y = layer_norm(p, n + "input_layernorm", x)
            q, k, v = (split(linear(p, n + "self_attn." + part, y), heads) for part in ("q_proj", "k_proj", "v_proj"))
            a = attend(turned(q, frequencies), turned(k, frequencies), v, causal(mask), head ** -0.5)
            m = linear(p, n + "mlp.fc2", gelu_tanh(linear(p, n + "mlp.fc1", y)))
            x = linear(p, n + "self_attn.dense", a) + m + x
        return linear(p, "lm_head", layer_norm(p, "model.final_layernorm", x))

    return {"architectures": ["PhiForCausalLM"], "model_type": "phi", "vocab_size": VOCAB, "hidden_size": WIDTH,
            "intermediate_size": INNER, "num_hidden_layers": LAYERS, "num_attention_heads": heads,
            "max_position_embeddings": 32, "partial_rotary_factor": 0.5, "layer_norm_eps": 1e-5,
            "rope_theta": 10000.0, "hidden_act": "gelu_new"}, s, forward


def neox(seed, parallel):
    heads, head, frequencies = 2, 4, plain_frequencies(2, 10000.0)
    s = Spec(seed)
    s.add("gpt_neox.embed_in.weight", VOCAB, WIDTH)
    for i in range(LAYERS):
        n = f"gpt_neox.layers.{i}."
        s.norm(n + "input_layernorm", WIDTH, True)
        s.norm(n + "post_attention_layernorm", WIDTH, True)
        s.linear(n + "attention.query_key_value", 3 * WIDTH, WIDTH, True)
        s.linear(n + "attention.dense", WIDTH, WIDTH, True)
        s.linear(n + "mlp.dense_h_to_4h", INNER, WIDTH, True)
        s.linear(n + "mlp.dense_4h_to_h", WIDTH, INNER, True)
    s.norm("gpt_neox.final_layer_norm", WIDTH, True)
    s.linear("embed_out", VOCAB, WIDTH, False)

    def forward(p, tokens, mask):
        x = p["gpt_neox.embed_in.weight"][tokens]
        for i in range(LAYERS):
            n = f"gpt_neox.layers.{i}."
            y = linear(p, n + "attention.query_key_value", layer_norm(p, n + "input_layernorm", x))
            y = split(y, heads)                        # each head: query, key, value
            q, k, v = y[..., :head], y[..., head:2 * head], y[..., 2 * head:]
            a = attend(turned(q, frequencies), turned(k, frequencies), v, causal(mask), head ** -0.5)
            a = linear(p, n + "attention.dense", a)
            base = x if parallel else x + a
            m = layer_norm(p, n + "post_attention_layernorm", base)
            m = linear(p, n + "mlp.dense_4h_to_h", F.gelu(linear(p, n + "mlp.dense_h_to_4h", m)))
            x = x + a + m
        return linear(p, "embed_out", layer_norm(p, "gpt_neox.final_layer_norm", x))

    return {"architectures": ["GPTNeoXForCausalLM"], "model_type": "gpt_neox", "vocab_size": VOCAB,
            "hidden_size": WIDTH, "intermediate_size": INNER, "num_hidden_layers": LAYERS,
            "num_attention_heads": heads, "max_position_embeddings": 32, "rotary_pct": 0.5, "rotary_emb_base": 10000,
            "layer_norm_eps": 1e-5, "hidden_act": "gelu", "use_parallel_residual": parallel,
            "tie_word_embeddings": False}, s, forward


# ---------------------------------------------------------------------------------------------------------- T5
def bucket(distance, both, buckets, farthest):
    result = 0
    if both:
        buckets //= 2
        result = buckets if distance > 0 else 0
        distance = abs(distance)
    else:
        distance = max(-distance, 0)
    exact = buckets // 2
    if distance < exact:
        return result + distance
    far = exact + int(math.log(distance / exact) / math.log(farthest / exact) * (buckets - exact))
    return result + min(far, buckets - 1)


def t5(seed, gated):
    heads, head, buckets, farthest = 2, 3, 8, 6
    s = Spec(seed)
    s.add("shared.weight", VOCAB, WIDTH)

    def attention(name):
        for part in "qkv":
            s.linear(name + "." + part, heads * head, WIDTH, False)
        s.linear(name + ".o", WIDTH, heads * head, False)

    for side in ("encoder", "decoder"):
        for i in range(T5_LAYERS):
            n = f"{side}.block.{i}.layer."
            s.norm(n + "0.layer_norm", WIDTH, False)
            attention(n + "0.SelfAttention")
            if i == 0:
                s.add(n + "0.SelfAttention.relative_attention_bias.weight", buckets, heads, std=1.0)
            last = "1"
            if side == "decoder":
                s.norm(n + "1.layer_norm", WIDTH, False)
                attention(n + "1.EncDecAttention")
                last = "2"
            s.norm(n + last + ".layer_norm", WIDTH, False)
            for part in ("wi_0", "wi_1") if gated else ("wi",):
                s.linear(n + last + ".DenseReluDense." + part, INNER, WIDTH, False)
            s.linear(n + last + ".DenseReluDense.wo", WIDTH, INNER, False)
        s.norm(side + ".final_layer_norm", WIDTH, False)
    if gated:
        s.linear("lm_head", VOCAB, WIDTH, False)

    def attended(p, name, x, source, seen, bias=None):
        q, k, v = (split(linear(p, name + "." + part, y), heads) for part, y in (("q", x), ("k", source), ("v", source)))
        return linear(p, name + ".o", attend(q, k, v, seen, 1.0, bias))

    def biases(p, side, t, both):
        table = p[side + ".block.0.layer.0.SelfAttention.relative_attention_bias.weight"]
        index = torch.tensor([[bucket(k - q, both, buckets, farthest) for k in range(t)] for q in range(t)])
        return table[index].permute(2, 0, 1)[None]

    def fed(p, name, x):
        d = name + "DenseReluDense."
        y = rms_norm(p[name + "layer_norm.weight"], x, 1e-6)
        inner = gelu_tanh(linear(p, d + "wi_0", y)) * linear(p, d + "wi_1", y) if gated else F.relu(linear(p, d + "wi", y))
        return x + linear(p, d + "wo", inner)

    def forward(p, tokens, mask, written):
        keys = mask.bool()[:, None, None, :]
        x = p["shared.weight"][tokens]
        bias = biases(p, "encoder", tokens.shape[1], True)
        for i in range(T5_LAYERS):
            n = f"encoder.block.{i}.layer."
            y = rms_norm(p[n + "0.layer_norm.weight"], x, 1e-6)
            x = x + attended(p, n + "0.SelfAttention", y, y, keys, bias)
            x = fed(p, n + "1.", x)
        source = rms_norm(p["encoder.final_layer_norm.weight"], x, 1e-6)
        x = p["shared.weight"][written]
        bias = biases(p, "decoder", written.shape[1], False)
        for i in range(T5_LAYERS):
            n = f"decoder.block.{i}.layer."
            y = rms_norm(p[n + "0.layer_norm.weight"], x, 1e-6)
            x = x + attended(p, n + "0.SelfAttention", y, y, causal(torch.ones_like(written)), bias)
            y = rms_norm(p[n + "1.layer_norm.weight"], x, 1e-6)
            x = x + attended(p, n + "1.EncDecAttention", y, source, keys)
            x = fed(p, n + "2.", x)
        x = rms_norm(p["decoder.final_layer_norm.weight"], x, 1e-6)
        return linear(p, "lm_head", x) if gated else x * WIDTH ** -0.5 @ p["shared.weight"].t()

    return {"architectures": ["T5ForConditionalGeneration"], "model_type": "t5", "vocab_size": VOCAB,
            "d_model": WIDTH, "d_kv": head, "d_ff": INNER, "num_layers": T5_LAYERS, "num_heads": heads,
            "relative_attention_num_buckets": buckets, "relative_attention_max_distance": farthest,
            "feed_forward_proj": "gated-gelu" if gated else "relu", "tie_word_embeddings": not gated,
            "layer_norm_epsilon": 1e-6, "decoder_start_token_id": 0}, s, forward


def main():
    llama3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
              "original_max_position_embeddings": 16}
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "beta_fast": 2.0,
            "beta_slow": 1.0}
    cases = {
        "llama3-rope": family("llama", 1, 4, 2, 6, {"rms_norm_eps": 1e-5, "rope_theta": 20.0, "rope_scaling": llama3},
                              llama3_frequencies(6, 20.0, 4.0, 1.0, 4.0, 16)),
        "yarn-rope": family("llama", 2, 2, 1, 8, {"rms_norm_eps": 1e-5, "rope_theta": 20.0, "rope_scaling": yarn},
                            yarn_frequencies(8, 20.0, 4.0, 16, 2.0, 1.0), 0.1 * math.log(4.0) + 1),
        "qwen3": family("qwen3", 3, 4, 2, 6, {"rms_norm_eps": 1e-6, "rope_theta": 1e6}, plain_frequencies(6, 1e6)),
        "gemma": family("gemma", 4, 2, 1, 6, {"rms_norm_eps": 1e-6, "hidden_activation": "gelu_pytorch_tanh"},
                        plain_frequencies(6, 10000.0)),
        "phi": phi(5),
        "neox": neox(6, True),
        "neox-serial": neox(7, False),
        "t5": t5(8, False),
        "t5-gated": t5(9, True),
    }
    for name, (config, weights, forward) in cases.items():
        folder = os.path.join(HERE, name)
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "config.json"), "w") as f:
            json.dump(config, f, separators=(",", ":"))
            f.write("\n")
        write(os.path.join(folder, "model.safetensors"), {n: w.half() for n, w in weights.items()})
        random = np.random.RandomState(100)
        tokens = torch.from_numpy(random.randint(1, VOCAB, (2, 7)))
        mask = torch.ones_like(tokens)
        mask[1, 5:] = 0
        tensors = {"tokens": tokens, "mask": mask}
        if config["model_type"] == "t5":
            written = torch.from_numpy(random.randint(1, VOCAB, (2, 5)))
            written[:, 0] = 0
            tensors["written"] = written
            logits = forward(weights, tokens, mask, written)
        else:
            logits = forward(weights, tokens, mask)
        tensors["logits"] = logits.float()
        write(os.path.join(folder, "expected.safetensors"), tensors)
        print(f"{name:12s} {sum(w.numel() for w in weights.values()):6d} weights, logits std {logits.std():.2f}")


if __name__ == "__main__":
    main()
