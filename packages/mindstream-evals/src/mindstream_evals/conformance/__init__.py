"""Conformance suites for stores, models, tools and reasoners of other authors; pytest is optional.

Each promise is an async function that takes a factory and raises `AssertionError` with the expectation. With pytest:
`@pytest.mark.parametrize("promise", store.PROMISES)`, and `await promise(open_mine)`. Without:
`await keep(store.PROMISES, open_mine)`.
"""
