"""Nested tensors: tensors of several sizes in one, for layout=torch.jagged and layout=torch.strided."""
