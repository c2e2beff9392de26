"""Conversion of language models to CTranslate2 and ONNX."""
