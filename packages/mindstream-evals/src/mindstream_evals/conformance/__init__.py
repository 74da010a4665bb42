"""Conformance suites for third-party stores, models, tools and reasoners; pytest is optional.

Each promise is an async function that takes a factory. A broken promise raises `AssertionError` with the expectation.
With pytest: `@pytest.mark.parametrize("promise", store.PROMISES)`, and `await promise(open_mine)`. Without pytest:
`await keep(store.PROMISES, open_mine)`.
"""
