"""For the type checker: every family has the code that the stages, the report and `compare` require."""

from transformer.core import task
from transformer.families.classifier import build_vocab as classifier_build_vocab
from transformer.families.classifier import convert as classifier_convert
from transformer.families.classifier import download as classifier_download
from transformer.families.classifier import evaluate as classifier_evaluate
from transformer.families.classifier import export as classifier_export
from transformer.families.classifier import figures as classifier_figures
from transformer.families.classifier import report as classifier_compare
from transformer.families.classifier import report as classifier_report
from transformer.families.classifier import tokenize as classifier_tokenize
from transformer.families.classifier import train as classifier_train
from transformer.families.language import build_vocab as language_build_vocab
from transformer.families.language import convert as language_convert
from transformer.families.language import download as language_download
from transformer.families.language import evaluate as language_evaluate
from transformer.families.language import export as language_export
from transformer.families.language import figures as language_figures
from transformer.families.language import report as language_compare
from transformer.families.language import report as language_report
from transformer.families.language import tokenize as language_tokenize
from transformer.families.language import train as language_train
from transformer.families.seq2seq import build_vocab as seq2seq_build_vocab
from transformer.families.seq2seq import convert as seq2seq_convert
from transformer.families.seq2seq import download as seq2seq_download
from transformer.families.seq2seq import evaluate as seq2seq_evaluate
from transformer.families.seq2seq import export as seq2seq_export
from transformer.families.seq2seq import figures as seq2seq_figures
from transformer.families.seq2seq import report as seq2seq_compare
from transformer.families.seq2seq import report as seq2seq_report
from transformer.families.seq2seq import tokenize as seq2seq_tokenize
from transformer.families.seq2seq import train as seq2seq_train
from transformer.reporting.page import PageCode
from transformer.workflow.compare import CompareCode

DOWNLOAD: tuple[task.DownloadCode, ...] = (classifier_download, language_download, seq2seq_download)
TOKENIZE: tuple[task.TokenizeCode, ...] = (classifier_tokenize, language_tokenize, seq2seq_tokenize)
BUILD_VOCAB: tuple[task.BuildVocabCode, ...] = (classifier_build_vocab, language_build_vocab, seq2seq_build_vocab)
TRAIN: tuple[task.TrainCode, ...] = (classifier_train, language_train, seq2seq_train)
FIGURES: tuple[task.FiguresCode, ...] = (classifier_figures, language_figures, seq2seq_figures)
EVALUATE: tuple[task.EvaluateCode, ...] = (classifier_evaluate, language_evaluate, seq2seq_evaluate)
EXPORT: tuple[task.ExportCode, ...] = (classifier_export, language_export, seq2seq_export)
CONVERT: tuple[task.ConvertCode, ...] = (classifier_convert, language_convert, seq2seq_convert)
REPORT: tuple[task.ReportCode, ...] = (classifier_report, language_report, seq2seq_report)
PAGE: tuple[PageCode, ...] = (classifier_report, language_report, seq2seq_report)
COMPARE: tuple[CompareCode, ...] = (classifier_compare, language_compare, seq2seq_compare)
