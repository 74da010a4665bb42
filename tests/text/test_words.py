from mindstream.text.words import batches, plain_words, terms


def test_english_is_stemmed_and_stop_words_are_removed() -> None:
    assert terms("She was dancing in the studios") == ["danc", "studio"]


def test_irregular_forms_are_reduced_to_their_base() -> None:
    assert terms("He bought a cello and took it home") == terms("buy cello take home he")


def test_chinese_is_split_into_character_pairs() -> None:
    assert plain_words("睡眠质量") == ["睡眠", "眠质", "质量"]
    assert set(terms("我昨天睡眠质量很差")) & set(terms("睡眠怎么样")) == {"睡眠"}


def test_japanese_and_korean_are_split_into_character_pairs() -> None:
    assert "コー" in plain_words("コーヒーが好き")
    assert "커피" in plain_words("커피를 마셨다")


def test_accents_and_full_width_forms_are_normalised() -> None:
    assert plain_words("Café ＡＢＣ１２") == plain_words("cafe abc12")


def test_text_without_words_gives_no_terms() -> None:
    assert terms("?!… 🙂") == []


def test_batches_are_in_order_and_the_last_is_shorter() -> None:
    assert list(batches("abcde", 2)) == [["a", "b"], ["c", "d"], ["e"]]
    assert list(batches((), 3)) == []
