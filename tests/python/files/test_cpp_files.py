"""Files that the C++ client writes (tests/client/api/files_test.cc compares what it writes with these files)."""

from pathlib import Path

import teletensor as torch

CPP = Path(__file__).resolve().parents[2] / "client/api"


def test_pt_file():
    value = torch.load(CPP / "written_by_cpp.pt")
    weight = value["weight"]
    assert weight.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert value["transposed"].stride() == (1, 3)
    weight.fill_(9)  # the file's tensors share memory as the program's did
    assert value["column"].tolist() == [9, 9]
    assert value["counts"].dtype is torch.int64 and value["mask"].tolist() == [True, False]
    assert value["half"].dtype is torch.float16 and value["half"].tolist() == [0.5, -2]
    assert value["empty"].shape == (0, 3) and value["number"].item() == 2.5
    assert value["numbers"] == [1, -70000, 1 << 40, 0.25, True, None, "text"] and value[3] == "three"


def test_safetensors_file():
    tensors = torch.load(CPP / "written_by_cpp.safetensors")
    assert tensors['a "quoted" name'].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert tensors["b"].dtype is torch.bfloat16 and tensors["b"].tolist() == [1, 2]
