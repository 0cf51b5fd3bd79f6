"""Layers with einops's names; torch has those of PyTorch."""
