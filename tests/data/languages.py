"""Some hundred sentence pairs in scripts and orders unlike English.

Each language has eight phrases for who, what and where, and an order; English has the same in its own.
"""

from collections.abc import Sequence
from itertools import product
from random import Random

Phrases = tuple[str, str, str, str]
"""Who, what is done, where, each separated by slashes; and the order."""

ENGLISH: Phrases = (
    "a man / a woman / the child / my brother / the teacher / an old farmer / the doctor / a dog",
    "is sleeping / is waiting / is running / is eating / is laughing / is sitting / is playing / is singing",
    "in the house / on the street / in the garden / by the river / at the market / in the school / "
    "under the tree / by the sea",
    "{who} {does} {where}.",
)
LANGUAGES: dict[str, Phrases] = {
    "ar": (
        "رجل / امرأة / الطفل / أخي / المعلم / مزارع عجوز / الطبيب / كلب",
        "ينام / ينتظر / يركض / يأكل / يضحك / يجلس / يلعب / يغني",
        "في البيت / في الشارع / في الحديقة / بجانب النهر / في السوق / في المدرسة / تحت الشجرة / بجانب البحر",
        "{does} {who} {where}.",
    ),
    "ja": (
        "男の人 / 女の人 / その子供 / 私の兄 / 先生 / 年取った農夫 / 医者 / 犬",
        "眠っています / 待っています / 走っています / 食べています / 笑っています / 座っています / "
        "遊んでいます / 歌っています",
        "家の中で / 通りで / 庭で / 川のそばで / 市場で / 学校で / 木の下で / 海辺で",
        "{who}が{where}{does}。",
    ),
}


def pairs(language: str) -> list[tuple[str, str]]:
    """All 512 sentences of a language, each with the English one, in a random but fixed order."""
    numbers = list(product(range(8), repeat=3))
    Random(1).shuffle(numbers)
    return [(sentence(LANGUAGES[language], each), sentence(ENGLISH, each)) for each in numbers]


def sentence(phrases: Phrases, numbers: Sequence[int]) -> str:
    who, does, where = (given.split(" / ")[number] for given, number in zip(phrases[:3], numbers, strict=True))
    return phrases[3].format(who=who, does=does, where=where)
