"""A life without a model: M2, M1 and M0 by rules, over documents, a memory and a person's answers, English and Chinese.

`living` is the rule of M2, `carrying_out` of M1, `thinking` of M0, `fold_by_rules` of folding; what they read and say
lies beside them. They find and quote, ask and remember; what wants more is named, and left.
"""
