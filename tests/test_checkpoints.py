"""Checkpoints: what is saved comes back, and whatever is wrong with the files is said."""

import json

import pytest
import torch

from attention_course.checkpoints import CHECKPOINTS, CheckpointError, load, save
from attention_course.pretrained import sha256
from autograder.masters import ROOT

ABOUT = {"sizes": {"d_model": 3}, "vocabulary": ["[MASK]", "naïve"]}
LOG = [{"step": 0, "loss": 2.5}, {"step": 10, "loss": 1.25}]
HOW = {"command": "python make_it.py", "seed": 7, "steps": 10, "seconds": 1.6, "losses": LOG}


def weights():
    table = torch.arange(12.0).reshape(4, 3) / 8
    return {"table": table, "tied": table, "turned": table.T, "places": torch.arange(4)}


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "folder" / "tiny.safetensors"
    save(path, weights(), about=ABOUT, **HOW)
    return path


def test_what_is_saved_comes_back_with_its_history(saved):
    found = load(saved)
    assert found.weights.keys() == weights().keys()
    for name, tensor in weights().items():
        torch.testing.assert_close(found.weights[name], tensor, rtol=0, atol=0)
    assert found.about == ABOUT
    assert {name: found.made[name] for name in HOW} == {**HOW, "seconds": 2}
    assert found.made["sha256"] == sha256(saved)
    assert "torch" in found.made["versions"] and found.made["date"] and found.made["machine"]


def test_the_same_weights_give_the_same_hash(saved, tmp_path):
    again = save(tmp_path / "again.safetensors", weights(), about=ABOUT, **HOW)
    assert again == sha256(saved)


def test_half_precision_is_a_choice(tmp_path):
    third = {"w": torch.tensor([1 / 3])}
    for half in (True, False):
        path = tmp_path / f"{half}.safetensors"
        save(path, third, about={}, half=half, **HOW)
        back = load(path).weights["w"]
        assert back.dtype == torch.float32
        assert torch.equal(back, third["w"]) is not half
    with pytest.raises(ValueError, match=r"w is not finite as torch\.float16"):
        save(path, {"w": torch.tensor([1e6])}, about={}, **HOW)
    with pytest.raises(ValueError, match=r"ends in \.safetensors; got w\.pt"):
        save(tmp_path / "w.pt", third, about={}, **HOW)


def test_damaged_files_are_refused_with_what_to_do(saved):
    whole = saved.read_bytes()
    saved.write_bytes(whole[:-1])
    with pytest.raises(CheckpointError, match=r"cut short: .* bytes\. .*python make_it\.py"):
        load(saved)
    saved.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(CheckpointError, match=r"not the file that tiny\.json describes.*make_it"):
        load(saved)
    saved.unlink()
    with pytest.raises(CheckpointError, match=r"there is no tiny\.safetensors.*make_it"):
        load(saved)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, r"there is no tiny\.json"),
        ("{", r"tiny\.json is damaged"),
        ("[]", r"tiny\.json is damaged"),
        (json.dumps({"bytes": 3, "command": "x"}), "lacks sha256"),
    ],
)
def test_weights_without_a_sound_description_are_refused(saved, text, message):
    sidecar = saved.with_suffix(".json")
    sidecar.unlink() if text is None else sidecar.write_text(text)
    with pytest.raises(CheckpointError, match=message):
        load(saved)


def test_all_that_come_with_the_course_are_whole_small_and_named():
    shipped = sorted(CHECKPOINTS.glob("*.safetensors"))
    assert shipped
    sources = (CHECKPOINTS.parent / "DATA.md").read_text(encoding="utf-8")
    for path in shipped:
        made = load(path).made
        assert made["bytes"] < 3_000_000
        assert made["losses"] and made["steps"] > 0
        assert (ROOT / made["command"].split()[1]).is_file(), "the script that makes it is missing"
        assert f"`{path.stem}`" in sources
