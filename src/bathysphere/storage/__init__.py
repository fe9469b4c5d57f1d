"""Bytes on disk and arrays by name: atomic files, JSON, safetensors, checkpoints, versions."""
