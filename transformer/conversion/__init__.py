"""Exported models in other formats: CTranslate2 and ONNX."""
