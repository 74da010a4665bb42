"""Train a small planner on the plans of solved runs: LoRA, merged, to be converted and served (docs/specialise.md).

    mindstream plan export --solved --docs DIR > train.jsonl
    python tools/train_planner.py train.jsonl --model HuggingFaceTB/SmolLM2-360M-Instruct --out planner

It needs `torch`, `transformers` and `peft`, and `gguf` for a model from a GGUF file. It uses a GPU if there is one. The
loss covers only the planner's output, not its prompt. A tenth of the lines is held out to measure progress.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

IGNORED = -100
"""The label of a token without loss."""
HELD_OUT = 10
"""One line in this many is held out."""


def read_lines(file: Path) -> list[list[dict[str, str]]]:
    """Read the chats that `plan export` writes."""
    return [json.loads(line)["messages"] for line in file.read_text("utf-8").splitlines() if line.strip()]


def load(name: str) -> tuple[Any, Any]:
    """Load a tokenizer and a model from the hub or a folder; weights from a GGUF file are dequantised."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    path = Path(name)
    where = (str(path.parent), {"gguf_file": path.name}) if path.suffix == ".gguf" else (name, {})
    kind = torch.bfloat16 if torch.cuda.is_available() and torch.cuda.is_bf16_supported() else torch.float32
    tokenizer = AutoTokenizer.from_pretrained(where[0], **where[1])
    model = AutoModelForCausalLM.from_pretrained(where[0], dtype=kind, **where[1])
    if path.suffix == ".gguf":  # copy the weights to a model that can be saved; the loaded one counts as quantised
        weights, config = model.state_dict(), model.config
        del config.quantization_config
        model = AutoModelForCausalLM.from_config(config, dtype=kind)
        model.load_state_dict(weights)
    return tokenizer, model.to("cuda" if torch.cuda.is_available() else "cpu")


def encode(tokenizer: Any, chat: Sequence[dict[str, str]], longest: int) -> tuple[list[int], list[int]]:
    """Return a chat's tokens and labels; tokens before the plan have no loss."""
    told = tokenizer.apply_chat_template([*chat[:-1]], add_generation_prompt=True, tokenize=False)
    whole = tokenizer.apply_chat_template([*chat], tokenize=False)
    if not whole.startswith(told):
        raise SystemExit("the model's chat template does not put the reply after the prompt; take another model")
    before, after = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in (told, whole[len(told) :]))
    return [*before, *after][-longest:], [*[IGNORED] * len(before), *after][-longest:]


def batches(rows: Sequence[tuple[list[int], list[int]]], size: int, pad: int, device: Any) -> list[dict[str, Any]]:
    """Return batches of rows, padded to a common length."""
    import torch

    found = []
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        width = max(len(ids) for ids, _ in part)
        columns = {
            "input_ids": [ids + [pad] * (width - len(ids)) for ids, _ in part],
            "attention_mask": [[1] * len(ids) + [0] * (width - len(ids)) for ids, _ in part],
            "labels": [labels + [IGNORED] * (width - len(labels)) for _, labels in part],
        }
        found.append({name: torch.tensor(column, device=device) for name, column in columns.items()})
    return found


def mean_loss(model: Any, parts: Sequence[dict[str, Any]]) -> float:
    """Return the mean loss on the held-out lines."""
    import torch

    model.eval()
    with torch.no_grad():
        return sum(float(model(**part).loss) for part in parts) / len(parts)


def train(asked: argparse.Namespace) -> dict[str, Any]:
    """Train, merge and save; return the losses before and after."""
    import torch
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(asked.seed)
    tokenizer, base = load(asked.model)
    chats = read_lines(asked.file)
    random.Random(asked.seed).shuffle(chats)
    rows = [encode(tokenizer, chat, asked.longest) for chat in chats]
    apart = max(1, len(rows) // HELD_OUT)
    if len(rows) < 2:
        raise SystemExit("expected at least two lines: one to train on, one held out")
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
    held, learned = (batches(part, asked.batch, pad, base.device) for part in (rows[:apart], rows[apart:]))
    lora = LoraConfig(r=asked.rank, lora_alpha=2 * asked.rank, target_modules="all-linear", task_type="CAUSAL_LM")
    model = get_peft_model(base, lora)
    before = mean_loss(model, held)
    optimizer = torch.optim.AdamW((each for each in model.parameters() if each.requires_grad), lr=asked.rate)
    for step in range(asked.steps):
        model.train()
        loss = model(**learned[step % len(learned)]).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step + 1} of {asked.steps}: loss {float(loss):.3f}", flush=True)
    after = mean_loss(model, held)
    model.merge_and_unload().save_pretrained(asked.out)
    tokenizer.save_pretrained(asked.out)
    return {"learned": len(rows) - apart, "held_out": apart, "steps": asked.steps, "before": before, "after": after}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="output of `mindstream plan export --solved`")
    parser.add_argument("--model", required=True, help="a name on the hub, a folder, or a GGUF file")
    parser.add_argument("--out", type=Path, default=Path("planner"), help="folder of the trained model [planner]")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--rate", type=float, default=2e-4)
    parser.add_argument("--longest", type=int, default=2048, help="maximum tokens per line; keeps the end")
    parser.add_argument("--seed", type=int, default=0)
    print(json.dumps(train(parser.parse_args())))


if __name__ == "__main__":
    main()
