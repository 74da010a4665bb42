"""Words for family and partners, in English and Chinese, by what they mean: mum, mother, 妈, 娘 are one person."""

from __future__ import annotations

import re

from mindstream.caches import remember

KIN = {
    "mother": "mother mum mom mam mama mummy mommy 妈妈 母亲 老妈 老娘 俺娘 阿妈 我妈 他妈 她妈 妈 娘 媽媽 "
    "母親 老媽 阿媽 媽",
    "father": "father dad da daddy papa 爸爸 父亲 老爸 老爹 俺爹 阿爸 爸 爹 父親",
    "daughter": "daughter 女儿 闺女 姑娘 丫头 囡囡 女兒 閨女 個女",
    "son": "son 儿子 小子 兒子 阿仔 個仔 个仔",
    "child": "child children kid kids baby 孩子 小孩 娃儿 娃娃 娃 宝宝 細路 小朋友",
    "husband": "husband hubby 丈夫 老公 先生 我男人 俺男人 老头子",
    "wife": "wife missus 妻子 老婆 太太 媳妇儿 媳妇 婆娘 堂客",
    "partner": "partner spouse 对象 爱人 老伴儿 老伴 對象 愛人 另一半",
    "girlfriend": "girlfriend gf 女朋友 女友",
    "boyfriend": "boyfriend bf 男朋友 男友",
    "brother": "brother bro 兄弟 弟弟 哥哥 我弟 我哥 大哥 老弟 老哥 阿哥 細佬 家兄",
    "sister": "sister sis 妹妹 姐姐 我妹 我姐 姊姊 姊妹 大姐 細妹 家姐 老妹 老姐",
    "grandmother": "grandmother grandma gran granny nan nana 奶奶 外婆 姥姥 阿嬷 嫲嫲 阿婆 外祖母 祖母",
    "grandfather": "grandfather grandpa grandad granddad 爷爷 外公 姥爷 爺爺 阿公 外祖父 祖父",
    "mother-in-law": "婆婆 岳母 丈母娘",
    "father-in-law": "公公 岳父 老丈人",
    "grandchild": "grandson granddaughter grandchild grandkid 孙子 孙女 外孙 孫子 孫女",
}
"""Who it is, and what they are called."""
WIDER = {"child": ("daughter", "son"), "partner": ("husband", "wife", "girlfriend", "boyfriend")}
"""Words that may mean several of them."""
_WHO = {word: who for who, words in KIN.items() for word in words.split()}
_LONGEST_FIRST = sorted(_WHO, key=len, reverse=True)
PATTERN = re.compile(
    rf"\b(?P<spaced>{'|'.join(word for word in _LONGEST_FIRST if word.isascii())})(?:['’]?s)?\b(?! ?-?in-law)"
    rf"|(?P<unspaced>{'|'.join(word for word in _LONGEST_FIRST if not word.isascii())})",
    re.IGNORECASE,
)


@remember(4096)
def find_kin(text: str) -> frozenset[str]:
    """Name who of the family a text speaks of."""
    return frozenset(_WHO[(found["spaced"] or found["unspaced"]).lower()] for found in PATTERN.finditer(text))


def without_kin(text: str) -> str:
    """Return a text without its words for family."""
    return PATTERN.sub(" ", text)


def may_mean(one: str, other: str) -> bool:
    """Tell whether two such words may mean the same person: a child may be a son."""
    return one == other or other in WIDER.get(one, ()) or one in WIDER.get(other, ())
