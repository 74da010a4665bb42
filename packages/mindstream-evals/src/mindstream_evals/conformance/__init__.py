"""What a store, a model, a tool, a reasoner promise, as tests for whoever writes one; nothing here needs pytest.

Each promise is an async function that takes a factory, opens what it needs and raises `AssertionError` with what was
wanted. With pytest: `@pytest.mark.parametrize("promise", store.PROMISES)`, and `await promise(open_mine)`. Without:
`await keep(store.PROMISES, open_mine)`.
"""
